// Reverse-mode differentiation of an op (vector-Jacobian product).
#ifndef ORIEL_IR_INTERFACES_DIFFERENTIABLE_TD
#define ORIEL_IR_INTERFACES_DIFFERENTIABLE_TD

include "mlir/IR/OpBase.td"

def DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::oriel::ir";
  let description = [{
    An op that can build its own vector-Jacobian product. The autodiff pass asks
    nothing else of an op, so a new op is differentiable as soon as it
    implements this.
  }];
  let methods = [
    InterfaceMethod<[{
        Builds the cotangents of the operands from those of the results.

        `resultCotangents[i]` has the type of result `i`; it is null where the
        cotangent is zero. `needed[j]` says whether operand `j` wants one.
        On success `operandCotangents[j]` has the type of operand `j`, or is null
        where it is zero or not needed. Only operands and results of the op
        itself may be captured: whatever else the backward reads must be a result
        of the forward op, since it becomes the stash.

        Fails, with a diagnostic, for an operand that can't be differentiated.
      }],
      "::mlir::LogicalResult", "buildVjp",
      (ins "::mlir::OpBuilder &":$builder,
           "::llvm::ArrayRef<::mlir::Value>":$resultCotangents,
           "::llvm::ArrayRef<bool>":$needed,
           "::llvm::SmallVectorImpl<::mlir::Value> &":$operandCotangents)>,
  ];
}

#endif
