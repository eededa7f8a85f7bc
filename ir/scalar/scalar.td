// How an op computes one element.
#ifndef ORIEL_IR_SCALAR_SCALAR_TD
#define ORIEL_IR_SCALAR_SCALAR_TD

include "mlir/IR/OpBase.td"

def ScalarOpInterface : OpInterface<"ScalarOpInterface"> {
  let cppNamespace = "::oriel::ir";
  let description = [{
    An op with the trait `Pointwise` that can say what it does with one element of each operand, in
    `arith` and `math`, so that chains of such ops become one kernel. The ops of the oriel dialect
    have models of it beside (elementwise_scalar.cc).
  }];
  let methods = [
    InterfaceMethod<[{
        Builds the element of each result from one of each operand, in compute types: bf16 comes and
        goes as f32, and the caller rounds; a boolean is i1; other types are themselves. Each op that
        it builds is one that IEEE 754 defines, so all targets have the same bits. It builds
        nothing and fails for what has no such form.
      }],
      "::mlir::LogicalResult", "buildScalar",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc,
           "::mlir::ValueRange":$operands,
           "::llvm::SmallVectorImpl<::mlir::Value> &":$results)>,
    InterfaceMethod<[{
        Whether the op's own kernels may have other last bits. Then the op has generated code
        wherever other ops have it, so that it gives the same bits wherever it stands.
      }],
      "bool", "isApproximated", (ins), "", /*defaultImplementation=*/"return false;">,
  ];
}

def RowReductionOpInterface : OpInterface<"RowReductionOpInterface"> {
  let cppNamespace = "::oriel::ir";
  let description = [{
    An op of one operand and one result that reduces over dimensions, and can say how, in `arith`:
    from a start, combined with each element, and finished. Elements are of compute types as in
    ScalarOpInterface; what is accumulated may be of another type. Which order elements come in is
    the caller's choice, so last bits may differ from those of the op's own kernels, and the op has
    generated code wherever other ops have it.
  }];
  let methods = [
    InterfaceMethod<"The dimensions that are reduced, sorted.",
      "::llvm::ArrayRef<int64_t>", "getReducedDims">,
    InterfaceMethod<[{
        What an accumulator begins with; null for elements that it does not take. Combined with
        another accumulator it gives that.
      }],
      "::mlir::Value", "buildStart",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc, "::mlir::Type":$element)>,
    InterfaceMethod<[{
        The accumulator with one more element. What it makes of the accumulator takes nothing of the
        element but one value of the accumulator's type: so accumulators are combined, too.
      }],
      "::mlir::Value", "buildCombined",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc,
           "::mlir::Value":$accumulator, "::mlir::Value":$element)>,
    InterfaceMethod<"The result's element, of `count` elements.",
      "::mlir::Value", "buildFinished",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc,
           "::mlir::Value":$accumulator, "int64_t":$count)>,
  ];
}

#endif
