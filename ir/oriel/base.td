// The oriel dialect, its type constraints and the base classes of its ops.
#ifndef ORIEL_IR_ORIEL_BASE_TD
#define ORIEL_IR_ORIEL_BASE_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "ir/interfaces/cost.td"
include "ir/interfaces/differentiable.td"
include "ir/interfaces/kernel.td"
include "ir/interfaces/precision.td"
include "ir/interfaces/sharding.td"

def OrielDialect : Dialect {
  let name = "oriel";
  let cppNamespace = "::oriel::ir";
  let summary = "Training programs in a global view: tensors as values";
  let description = [{
    Ops on statically shaped ranked tensors with value semantics. The importer
    makes them from ONNX, `raise` gathers them into semantic ops, `train` adds the
    backward and the update, and `lower` replaces each by one `exec` op.

    Every op that computes carries the inherent attribute `origin`: forward ops
    are numbered by the train phase, and a backward op bears the number of the
    forward op that it was derived from. -1 means none.
  }];
  let hasConstantMaterializer = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let useDefaultAttributePrinterParser = 1;
}

def Oriel_Float : AnyTypeOf<[F32, F64, F16, BF16]>;
def Oriel_Arithmetic : AnyTypeOf<[F32, F64, F16, BF16, I64, I32, I8, UI8]>;
def Oriel_Number : AnyTypeOf<[F32, F64, F16, BF16, I64, I32, I8, UI8, I1]>;
def Oriel_FloatTensor : StaticShapeTensorOf<[Oriel_Float]>;
def Oriel_ArithmeticTensor : StaticShapeTensorOf<[Oriel_Arithmetic]>;
def Oriel_Tensor : StaticShapeTensorOf<[Oriel_Number]>;
def Oriel_IndexTensor : StaticShapeTensorOf<[I64, I32]>;
// What f32 has beyond bf16 (runtime/base/remainder.h).
def Oriel_RemainderTensor : StaticShapeTensorOf<[I16]>;
def Oriel_BoolTensor : StaticShapeTensorOf<[I1]>;
// Where a rank's piece of a dimension begins.
def Oriel_First : 0DTensorOf<[I64]>;

// Attributes whose C++ type is int64_t and double.
def Oriel_IntAttr
    : TypedSignlessIntegerAttrBase<I64, "int64_t", "64-bit signless integer attribute">;
def Oriel_FloatAttr : FloatAttrBase<F64, "64-bit float attribute"> {
  let returnType = "double";
  let convertFromStorage = "$_self.getValueAsDouble()";
  let constBuilderCall = "$_builder.getF64FloatAttr($0)";
}

def Differentiable : DeclareOpInterfaceMethods<DifferentiableOpInterface>;
defvar InferTypes = InferTypeOpAdaptor;
// The same, but that floats narrower than f32 may be f32 in results that are sums.
defvar InferWideTypes = InferTypeOpAdaptorWithIsCompatible;

// Methods that an op overrides are named with the interface.
def FlopsOp : DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>;
def SparseReadOp : DeclareOpInterfaceMethods<CostOpInterface, ["getBytesRead"]>;
def OverwritingOp : DeclareOpInterfaceMethods<KernelOpInterface, ["mayOverwrite"]>;
def ViewOp : DeclareOpInterfaceMethods<KernelOpInterface, ["isView"]>;
def PreciseOp : DeclareOpInterfaceMethods<PrecisionOpInterface, ["getPrecision"]>;
def TablePreciseOp
    : DeclareOpInterfaceMethods<PrecisionOpInterface, ["getPrecision", "takesWide"]>;
def PositionOp : DeclareOpInterfaceMethods<PrecisionOpInterface, ["needsWide"]>;
def PositionPreciseOp
    : DeclareOpInterfaceMethods<PrecisionOpInterface, ["getPrecision", "needsWide"]>;
def WideSumOp : DeclareOpInterfaceMethods<PrecisionOpInterface, ["givesWide"]>;
def ShardedOp : DeclareOpInterfaceMethods<ShardableOpInterface, ["getShardingRule"]>;
def RebuiltShardedOp
    : DeclareOpInterfaceMethods<ShardableOpInterface, ["getShardingRule", "buildLocal"]>;
def SteppedShardedOp
    : DeclareOpInterfaceMethods<ShardableOpInterface, ["getShardingRule", "decompose"]>;
def RebuiltSteppedShardedOp
    : DeclareOpInterfaceMethods<ShardableOpInterface,
                                ["getShardingRule", "buildLocal", "decompose"]>;

// Element i of a result depends on element i of the broadcast operands alone (interfaces.h).
def Pointwise : NativeOpTrait<"Pointwise"> {
  let cppNamespace = "::oriel::ir";
}

// Element i of a result depends on element i of the operands of its shape alone: any of
// them may be overwritten.
class Oriel_PointwiseDefinition {
  code definition = [{
    bool $cppClass::mayOverwrite(unsigned, unsigned) { return true; }
  }];
}
def Oriel_Pointwise : Oriel_PointwiseDefinition;

// The same interface listed twice would be the same base class twice.
class Oriel_Lists<list<Trait> traits, string name> {
  bit value = !not(!empty(!filter(t, traits, !eq(!cast<string>(t), name))));
}
class Oriel_ComputeTraits<list<Trait> traits> {
  list<Trait> value = !listconcat(
      traits, [Pure],
      !if(!or(Oriel_Lists<traits, "FlopsOp">.value,
              Oriel_Lists<traits, "SparseReadOp">.value), []<Trait>,
          [DeclareOpInterfaceMethods<CostOpInterface>]),
      !if(!or(Oriel_Lists<traits, "OverwritingOp">.value,
              Oriel_Lists<traits, "ViewOp">.value), []<Trait>,
          [DeclareOpInterfaceMethods<KernelOpInterface>]),
      !if(!or(Oriel_Lists<traits, "PreciseOp">.value,
              Oriel_Lists<traits, "TablePreciseOp">.value,
              Oriel_Lists<traits, "WideSumOp">.value), []<Trait>,
          [DeclareOpInterfaceMethods<PrecisionOpInterface>]),
      !if(!or(Oriel_Lists<traits, "ShardedOp">.value,
              Oriel_Lists<traits, "RebuiltShardedOp">.value,
              Oriel_Lists<traits, "SteppedShardedOp">.value,
              Oriel_Lists<traits, "RebuiltSteppedShardedOp">.value), []<Trait>,
          [DeclareOpInterfaceMethods<ShardableOpInterface>]));
}

// An op that computes: free of side effects, one kernel launch, with a cost. Plugins derive their
// ops from this class, with a dialect of their own.
class Oriel_ComputeOp<Dialect dialect, string mnemonic, dag args, list<Trait> traits = []>
    : Op<dialect, mnemonic, Oriel_ComputeTraits<traits>.value> {
  let arguments = !con(args, (ins DefaultValuedAttr<Oriel_IntAttr, "-1">:$origin));
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}
class Oriel_Op<string mnemonic, dag args, list<Trait> traits = []>
    : Oriel_ComputeOp<OrielDialect, mnemonic, args, traits>;

// Beside the op: that its result for one sample depends on the others (ir/oriel/traits.h).
def CouplesSamples : NativeOpTrait<"CouplesSamples"> {
  let cppNamespace = "::oriel::ir";
}
// Beside the op: that it has the derivative 0 (ir/oriel/traits.h).
def StepFunction : NativeOpTrait<"StepFunction"> {
  let cppNamespace = "::oriel::ir";
}

#endif
