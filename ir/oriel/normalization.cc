#include <cmath>

#include "ir/oriel/inference.h"
#include "ir/oriel/oriel.h"

namespace oriel::ir {

using mlir::failure;
using mlir::LogicalResult;
using mlir::success;
using mlir::Value;

namespace {

// Input of rank >= 1, weight as long as its last dimension, a finite epsilon >= 0 where given.
LogicalResult checkNorm(const InferenceContext& context, Value input, Value weight) {
  if (shapeOf(input).empty()) {
    return context.refuse("expects an input of rank at least 1, got rank 0");
  }
  return context.expectShape("a weight", weight, {shapeOf(input).back()});
}

LogicalResult checkEpsilon(const InferenceContext& context, double epsilon) {
  // Written so that a NaN is refused.
  if (epsilon >= 0) return success();
  return context.refuse("expects an epsilon of at least 0");
}

LogicalResult checkWeightOffset(const InferenceContext& context, double offset) {
  if (std::isfinite(offset)) return success();
  return context.refuse("expects a finite weight_offset");
}

// One statistic per row: the input's shape less the last dimension.
mlir::RankedTensorType rowType(Value input) {
  return mlir::RankedTensorType::get(shapeOf(input).drop_back(), wideType(elementOf(input)));
}

// Of a derivative: cotangent and weight are as the forward op had them.
LogicalResult checkGradOperands(const InferenceContext& context, Value cotangent, Value input,
                                Value weight) {
  if (failed(checkNorm(context, input, weight)) ||
      failed(context.expectElementType("a weight", weight, elementOf(input)))) {
    return failure();
  }
  return context.expectType("a cotangent", cotangent, input.getType());
}

template <typename OpTy>
LogicalResult verifyDim(OpTy op) {
  InferenceContext context(op.getLoc(), OpTy::getOperationName());
  return context.expectDim("a dim", op.getDim(), op.getType().getRank());
}

}  // namespace

LogicalResult LayerNormOp::inferReturnTypes(mlir::MLIRContext*, MaybeLocation location,
                                            Adaptor adaptor,
                                            llvm::SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, getOperationName());
  Value input = adaptor.getInput();
  if (failed(checkNorm(context, input, adaptor.getWeight())) ||
      failed(checkEpsilon(context, adaptor.getEpsilon()))) {
    return failure();
  }
  if (adaptor.getBias() &&
      failed(context.expectShape("a bias", adaptor.getBias(), {shapeOf(input).back()}))) {
    return failure();
  }
  results.append({input.getType(), rowType(input), rowType(input)});
  return success();
}

LogicalResult LayerNormGradOp::inferReturnTypes(mlir::MLIRContext*, MaybeLocation location,
                                                Adaptor adaptor,
                                                llvm::SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, getOperationName());
  Value input = adaptor.getInput();
  Value weight = adaptor.getWeight();
  if (failed(checkGradOperands(context, adaptor.getCotangent(), input, weight)) ||
      failed(context.expectType("a mean", adaptor.getMean(), rowType(input))) ||
      failed(context.expectType("an inv_std", adaptor.getInvStd(), rowType(input)))) {
    return failure();
  }
  results.append({input.getType(), weight.getType(), weight.getType()});
  return success();
}

bool LayerNormGradOp::isCompatibleReturnTypes(mlir::TypeRange inferred, mlir::TypeRange actual) {
  return areTypesOrWide(inferred, actual);
}

LogicalResult RmsNormOp::inferReturnTypes(mlir::MLIRContext*, MaybeLocation location,
                                          Adaptor adaptor,
                                          llvm::SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, getOperationName());
  Value input = adaptor.getInput();
  if (failed(checkNorm(context, input, adaptor.getWeight())) ||
      failed(checkEpsilon(context, adaptor.getEpsilon())) ||
      failed(checkWeightOffset(context, adaptor.getWeightOffset()))) {
    return failure();
  }
  results.append({input.getType(), rowType(input)});
  return success();
}

LogicalResult RmsNormGradOp::inferReturnTypes(mlir::MLIRContext*, MaybeLocation location,
                                              Adaptor adaptor,
                                              llvm::SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, getOperationName());
  Value input = adaptor.getInput();
  Value weight = adaptor.getWeight();
  if (failed(checkGradOperands(context, adaptor.getCotangent(), input, weight)) ||
      failed(context.expectType("an inv_rms", adaptor.getInvRms(), rowType(input))) ||
      failed(checkWeightOffset(context, adaptor.getWeightOffset()))) {
    return failure();
  }
  results.append({input.getType(), weight.getType()});
  return success();
}

bool RmsNormGradOp::isCompatibleReturnTypes(mlir::TypeRange inferred, mlir::TypeRange actual) {
  return areTypesOrWide(inferred, actual);
}

LogicalResult SoftmaxOp::verify() { return verifyDim(*this); }
LogicalResult SoftmaxGradOp::verify() { return verifyDim(*this); }

// Each element is read for the row's maximum and sum before any is written.
bool SoftmaxOp::mayOverwrite(unsigned, unsigned) { return true; }

}  // namespace oriel::ir
