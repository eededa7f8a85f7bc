// The exec dialect: programs as buffers and instructions, one op per plan entry.
#ifndef ORIEL_IR_EXEC_EXEC_OPS_TD
#define ORIEL_IR_EXEC_EXEC_OPS_TD

include "ir/oriel/attributes.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def ExecDialect : Dialect {
  let name = "exec";
  let cppNamespace = "::oriel::exec";
  let summary = "Programs of a plan: buffers at fixed offsets, and instructions";
  let description = [{
    What `lower` makes of the `oriel` dialect, and what `emit` translates to the plan
    one to one. Buffers are symbols; instructions run in order and name the buffers
    that they read and write.
  }];
}

class Exec_Op<string mnemonic, list<Trait> traits = []>
    : Op<ExecDialect, mnemonic, traits>;

def ProgramOp : Exec_Op<"program",
    [Symbol, SymbolTable, NoTerminator, SingleBlock, HasParent<"::mlir::ModuleOp">]> {
  let summary = "What the ranks of one rank class run";
  let description = [{
    Holds the buffers of one arena of `arena_bytes` bytes, and the segments.

    Example: `exec.program @ranks {first_rank = 0, rank_count = 4, arena_bytes = 4096}
    {...}`. Made by `lower`; read by `emit`.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$first_rank,
                       I64Attr:$rank_count, I64Attr:$arena_bytes);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
}

def BufferOp : Exec_Op<"buffer", [Symbol, HasParent<"ProgramOp">]> {
  let summary = "A tensor at a fixed place of the arena";
  let description = [{
    `kind`, `ref` and `slot` say what the buffer holds, as the fields of the plan's
    `Buffer` do (besides the roles of segment arguments: `constant`, with `value`, `temporary`,
    and `step_gradient` for a gradient that the one backward of a step sets). Views of one value have the same offset. `sharding` is how the global
    tensor, of which this is one rank's piece, lies over the grid.

    It has a copy at `offset` and one at each of `copy_offsets`; a run of microbatch m uses copy m
    modulo their number.

    Example: `exec.buffer @b7 : tensor<4x8xf32> {kind = "temporary", offset = 4096}`.
    Made by `lower`; read by `emit`.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttr:$type, StrAttr:$kind,
                       I64Attr:$offset, DefaultValuedStrAttr<StrAttr, "">:$ref,
                       DefaultValuedStrAttr<StrAttr, "">:$slot,
                       OptionalAttr<ElementsAttr>:$value,
                       OptionalAttr<Oriel_ShardingAttr>:$sharding,
                       DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$copy_offsets);
  let assemblyFormat = "$sym_name `:` $type attr-dict";
  let hasVerifier = 1;
}

def SegmentOp : Exec_Op<"segment",
    [Symbol, NoTerminator, SingleBlock, HasParent<"ProgramOp">]> {
  let summary = "Instructions that run in order";
  let description = [{
    Named forward, backward, update or eval; of several pipeline stages, with the stage's
    number behind a dot. `predicted_ms` is the time of one run by the cost model. Made by
    `lower`; read by `emit`.

    Example: `exec.segment @forward {...}`.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       DefaultValuedAttr<F64Attr, "0.0">:$predicted_ms);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
}

def RunOp : Exec_Op<"run",
    [HasParent<"ProgramOp">, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "One run of a segment in a training step";
  let description = [{
    The runs of a program, in order, are its schedule.

    Example: `exec.run @forward {microbatch = 0 : i64}`. Made by `lower`; read by `emit`.
  }];
  let arguments = (ins FlatSymbolRefAttr:$segment, I64Attr:$microbatch);
  let assemblyFormat = "$segment attr-dict";
}

def Exec_BufferList : TypedArrayAttrBase<FlatSymbolRefAttr, "buffers of the program">;

class Exec_Instruction<string mnemonic, dag args>
    : Exec_Op<mnemonic, [HasParent<"SegmentOp">,
                         DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let arguments = !con((ins Exec_BufferList:$inputs, Exec_BufferList:$outputs), args,
                       (ins DefaultValuedStrAttr<StrAttr, "">:$source_op));
}

def LaunchOp : Exec_Instruction<"launch", (ins StrAttr:$kernel,
    DictionaryAttr:$kernel_attributes, OptionalAttr<DictionaryAttr>:$rule,
    OptionalAttr<ArrayAttr>:$split, OptionalAttr<FlatSymbolRefAttr>:$generated)> {
  let summary = "One launch of a kernel";
  let description = [{
    `kernel_attributes` reach the kernel: integers, floats, strings and lists of integers.
    `rule` and `split` say how the launch came from one on whole tensors, as `partition`
    writes them; without them its operands and results are whole. `generated` names the
    `exec.kernel` that the kernel "generated" runs, and no other kernel has it.

    Example: `exec.launch "matmul" [@b0, @b1] -> [@b2] {transpose_rhs = true} from "oriel.matmul"`.
    Made by `lower`; read by `emit`.
  }];
  let assemblyFormat = [{
    $kernel $inputs `->` $outputs $kernel_attributes (`from` $source_op^)? attr-dict
  }];
}

def CollectiveOp : Exec_Instruction<"collective", (ins StrAttr:$collective,
    OptionalAttr<StrAttr>:$reduction, StrArrayAttr:$axes,
    OptionalAttr<DenseI64ArrayAttr>:$split_dims, OptionalAttr<DenseI64ArrayAttr>:$concat_dims,
    DefaultValuedAttr<I64Attr, "0">:$stream)> {
  let summary = "One collective over the ranks that differ in some atomic axes";
  let description = [{
    `collective` is the name of the op of the `oriel` dialect that it was: `all_reduce`,
    `all_gather`, `reduce_scatter` or `all_to_all`. `reduction` is `sum` or `max` where it
    reduces; operand `i` is cut into a piece per rank along `split_dims[i]`, and pieces are
    joined in result `i` along `concat_dims[i]`, where it cuts or joins. Only an all-reduce may
    have an operand for its result. With a `stream` above 0 it is started, and an `exec.wait`
    behind it ends it.

    Example: `exec.collective "all_reduce" "sum" ["a0"] [@b0] -> [@b0]`,
    `exec.collective "all_gather" ["a0", "a1"] [@b0] -> [@b1] {concat_dims = array<i64: 1>}`.
    Made by `lower`; read by `emit`.
  }];
  let assemblyFormat = [{
    $collective ($reduction^)? $axes $inputs `->` $outputs (`from` $source_op^)? attr-dict
  }];
}

def WaitOp : Exec_Op<"wait", [HasParent<"SegmentOp">]> {
  let summary = "Waits for a collective that the segment has started";
  let description = [{
    `collective` is the place of the `exec.collective` among the instructions of the segment.
    A segment waits once for each that it starts.

    Example: `exec.wait 3`. Made by `lower`; read by `emit`.
  }];
  let arguments = (ins I64Attr:$collective);
  let assemblyFormat = "$collective attr-dict";
}

def SliceOp : Exec_Instruction<"slice", (ins I64Attr:$dim, StrArrayAttr:$axes)> {
  let summary = "This rank's piece of a buffer, copied to another";
  let description = [{
    One operand, cut along `dim` into as many pieces as `axes` have ranks, one result. Pieces
    are numbered row-major over the axes.

    Example: `exec.slice 1 ["a0"] [@b0] -> [@b1]`. Made by `lower`; read by `emit`.
  }];
  let assemblyFormat = [{
    $dim $axes $inputs `->` $outputs (`from` $source_op^)? attr-dict
  }];
}

def CopyOp : Exec_Instruction<"copy", (ins)> {
  let summary = "Bytes of one buffer copied to another of the same type";
  let description = [{
    One operand, one result.

    Example: `exec.copy [@b0] -> [@b1]`. Made by `lower`; read by `emit`.
  }];
  let assemblyFormat = "$inputs `->` $outputs (`from` $source_op^)? attr-dict";
}

def SendOp : Exec_Instruction<"send", (ins StrAttr:$channel, StrAttr:$peer)> {
  let summary = "Starts to send a buffer to the ranks of another program";
  let description = [{
    One operand of the kind `transfer`, no result.

    Example: `exec.send "forward.0.p1" to "p1" [@b0] -> []`. Made by `lower`; read by `emit`.
  }];
  let assemblyFormat = [{
    $channel `to` $peer $inputs `->` $outputs (`from` $source_op^)? attr-dict
  }];
}

def ReceiveOp : Exec_Instruction<"receive", (ins StrAttr:$channel, StrAttr:$peer)> {
  let summary = "Waits until a buffer has arrived from the ranks of another program";
  let description = [{
    No operand, one result of the kind `transfer`.

    Example: `exec.receive "forward.0.p1" of "p0" [] -> [@b0]`. Made by `lower`; read by
    `emit`.
  }];
  let assemblyFormat = [{
    $channel `of` $peer $inputs `->` $outputs (`from` $source_op^)? attr-dict
  }];
}

def GeneratedOp : Exec_Op<"generated",
    [IsolatedFromAbove, Pure, SingleBlockImplicitTerminator<"YieldOp">,
     DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>,
     DeclareOpInterfaceMethods<KernelOpInterface, ["getKernelName", "mayOverwrite"]>]> {
  let summary = "Pointwise ops and reductions of rows of a segment that run as one launch";
  let description = [{
    The body holds the ops, on block arguments that are the operands, and yields the results,
    which have one shape, or that without its last dimensions or with 1 in their place, along which
    ops reduce. What it computes is what its ops compute one after the other.

    Example: `%1 = exec.generated(%a, %b) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xbf16> {..}`.
    Made by `form-generated` in front of `lower-to-exec`, which makes a launch and an
    `exec.kernel` of it.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `(` $inputs `)` `:` functional-type($inputs, $outputs) attr-dict-with-keyword $body
  }];
  let hasRegionVerifier = 1;
}

def YieldOp : Exec_Op<"yield", [Pure, Terminator, ParentOneOf<["GeneratedOp", "KernelOp"]>]> {
  let summary = "The results of generated code";
  let description = [{
    Example: `exec.yield %0 : tensor<8xf32>`. Made by `form-generated`; read by `emit`.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$values);
  let builders = [OpBuilder<(ins), "">];
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

def KernelOp : Exec_Op<"kernel",
    [Symbol, IsolatedFromAbove, SingleBlockImplicitTerminator<"YieldOp">, HasParent<"ProgramOp">]> {
  let summary = "A kernel that launches name, and that emit compiles";
  let description = [{
    The body of the `exec.generated` that it was, one for all that are equal.

    Example: `exec.kernel @generated0 {..}`. Made by `lower`; read by `emit`.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
}

#endif
