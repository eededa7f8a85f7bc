#include "ir/oriel/inference.h"
#include "ir/oriel/oriel.h"

namespace oriel::ir {

using mlir::failure;
using mlir::LogicalResult;
using mlir::success;
using mlir::Value;

LogicalResult MaskedScatterOp::inferReturnTypes(mlir::MLIRContext*, MaybeLocation location,
                                                Adaptor adaptor,
                                                llvm::SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, getOperationName());
  Value input = adaptor.getInput();
  if (failed(context.expectShape("a mask", adaptor.getMask(), shapeOf(input))) ||
      failed(context.expectElementType("a source", adaptor.getSource(), elementOf(input)))) {
    return failure();
  }
  results.push_back(input.getType());
  return success();
}

LogicalResult MaskedScatterGradOp::verify() {
  InferenceContext context(getLoc(), getOperationName());
  if (failed(context.expectShape("a mask", getMask(), shapeOf(getCotangent()))) ||
      failed(context.expectType("an input_grad", getInputGrad(), getCotangent().getType()))) {
    return failure();
  }
  return context.expectElementType("a source_grad", getSourceGrad(),
                                   getCotangent().getType().getElementType());
}

namespace {

// Input [b, s, d] with its mask [b, s] and features [b, n, d] of the same element type.
LogicalResult checkMerge(const InferenceContext& context, Value input, Value mask,
                         llvm::StringRef featuresName, Value features) {
  if (failed(context.expectRank("an input", input, 3)) ||
      failed(context.expectShape("a mask", mask, shapeOf(input).take_front(2))) ||
      failed(context.expectRank(featuresName, features, 3))) {
    return failure();
  }
  int64_t rows = shapeOf(features)[1];
  if (failed(context.expectShape(featuresName, features,
                                 {shapeOf(input)[0], rows, shapeOf(input)[2]}))) {
    return failure();
  }
  return context.expectElementType(featuresName, features, elementOf(input));
}

}  // namespace

LogicalResult MergeFeaturesOp::inferReturnTypes(mlir::MLIRContext*, MaybeLocation location,
                                                Adaptor adaptor,
                                                llvm::SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, getOperationName());
  if (failed(checkMerge(context, adaptor.getInput(), adaptor.getMask(), "features",
                        adaptor.getFeatures()))) {
    return failure();
  }
  results.push_back(adaptor.getInput().getType());
  return success();
}

LogicalResult CheckImageSlotsOp::inferReturnTypes(mlir::MLIRContext*, MaybeLocation location,
                                                  Adaptor adaptor,
                                                  llvm::SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, getOperationName());
  Value mask = adaptor.getMask();
  if (failed(context.expectRank("a mask", mask, 2)) ||
      failed(context.expectShape("images", adaptor.getImages(), shapeOf(mask).take_front(1))) ||
      failed(context.expectElementType("images", adaptor.getImages(),
                                       mlir::IntegerType::get(mask.getContext(), 64)))) {
    return failure();
  }
  if (adaptor.getRowsPerImage() < 1) {
    return context.refuse("expects rows_per_image of at least 1, got ", adaptor.getRowsPerImage());
  }
  results.push_back(mask.getType());
  return success();
}

LogicalResult MergeFeaturesGradOp::verify() {
  InferenceContext context(getLoc(), getOperationName());
  if (failed(context.expectType("an input_grad", getInputGrad(), getCotangent().getType()))) {
    return failure();
  }
  return checkMerge(context, getCotangent(), getMask(), "a features_grad", getFeaturesGrad());
}

}  // namespace oriel::ir
