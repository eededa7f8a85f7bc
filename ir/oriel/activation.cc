#include "ir/oriel/inference.h"
#include "ir/oriel/oriel.h"

namespace oriel::ir {
namespace {

using mlir::LogicalResult;
using mlir::success;

template <typename OpTy>
LogicalResult verifyKind(OpTy op) {
  return checkActivationKind(InferenceContext(op.getLoc(), OpTy::getOperationName()), op.getKind());
}

}  // namespace

LogicalResult checkActivationKind(const InferenceContext& context, llvm::StringRef kind) {
  if (llvm::is_contained({"gelu", "gelu_tanh", "gelu_quick", "silu"}, kind)) return success();
  return context.refuse("expects the kind gelu, gelu_tanh, gelu_quick or silu, got \"", kind, "\"");
}

LogicalResult ActivationOp::verify() { return verifyKind(*this); }
LogicalResult ActivationGradOp::verify() { return verifyKind(*this); }
LogicalResult GatedActivationOp::verify() { return verifyKind(*this); }

LogicalResult GatedActivationGradOp::inferReturnTypes(mlir::MLIRContext*, MaybeLocation location,
                                                      Adaptor adaptor,
                                                      llvm::SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, getOperationName());
  mlir::Type type = adaptor.getCotangent().getType();
  if (failed(checkActivationKind(context, adaptor.getKind())) ||
      failed(context.expectType("a gate", adaptor.getGate(), type)) ||
      failed(context.expectType("an up operand", adaptor.getUp(), type))) {
    return mlir::failure();
  }
  results.append(2, type);
  return success();
}

}  // namespace oriel::ir
