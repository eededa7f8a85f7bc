#include "ir/oriel/inference.h"
#include "ir/oriel/oriel.h"

namespace oriel::ir {

using mlir::failure;
using mlir::LogicalResult;

namespace {

// An input has the row of each choice, or one row for all of them.
LogicalResult checkInput(const InferenceContext& context, mlir::Value input, mlir::Value choice) {
  llvm::ArrayRef<int64_t> rows = shapeOf(choice);
  if (rows.empty()) return context.refuse("expects choices of at least one dimension");
  llvm::ArrayRef<int64_t> shape = shapeOf(input);
  if (!shape.empty() && (shape.drop_back() == rows || shape.drop_back() == rows.drop_back())) {
    return mlir::success();
  }
  return context.refuse("expects an input with the dimensions of the choices ", shapeText(rows),
                        " before its last, or all but the last of them, got ", shapeText(shape));
}

// Of the products of `choices` rows with `depth` x `columns` matrices, those with a piece of the
// experts: on average.
int64_t productFlops(int64_t choices, int64_t depth, int64_t columns, int64_t experts,
                     int64_t allExperts) {
  const double share = allExperts == 0 ? 1 : static_cast<double>(experts) / allExperts;
  return static_cast<int64_t>(static_cast<double>(boundedProduct({2, choices, depth, columns})) *
                              share);
}

}  // namespace

LogicalResult ExpertLinearOp::inferReturnTypes(mlir::MLIRContext*, MaybeLocation location,
                                               Adaptor adaptor,
                                               llvm::SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, getOperationName());
  if (failed(checkInput(context, adaptor.getInput(), adaptor.getChoice())) ||
      failed(context.expectRank("a weight", adaptor.getWeight(), 3))) {
    return failure();
  }
  mlir::Type elementType = tensorType(adaptor.getInput()).getElementType();
  llvm::ArrayRef<int64_t> weight = shapeOf(adaptor.getWeight());
  const bool transposed = adaptor.getTransposeWeight();
  const int64_t depth = weight[transposed ? 2 : 1], columns = weight[transposed ? 1 : 2];
  if (shapeOf(adaptor.getInput()).back() != depth) {
    return context.refuse("expects an input with a last dimension of ", depth, ", got ",
                          shapeText(shapeOf(adaptor.getInput())));
  }
  if (failed(context.expectElementType("a weight", adaptor.getWeight(), elementType)) ||
      failed(context.expectPiece(adaptor.getFirst(), "experts", adaptor.getExperts(), weight[0]))) {
    return failure();
  }
  llvm::SmallVector<int64_t> shape(shapeOf(adaptor.getChoice()));
  shape.push_back(columns);
  return context.addResult(shape, elementType, results);
}

int64_t ExpertLinearOp::getFlops() {
  return productFlops(elementCount(shapeOf(getChoice())), shapeOf(getInput()).back(),
                      getType().getShape().back(), shapeOf(getWeight())[0], getExperts());
}

LogicalResult checkExpertWeightGrad(const InferenceContext& context, mlir::Value input,
                                    mlir::Value cotangent, mlir::Value choice, mlir::Value first,
                                    int64_t experts, bool transposed, mlir::Value result) {
  if (failed(checkInput(context, input, choice))) return failure();
  llvm::ArrayRef<int64_t> rows = shapeOf(choice), shape = shapeOf(cotangent);
  if (shape.empty() || shape.drop_back() != rows) {
    return context.refuse("expects a cotangent with the dimensions of the choices ",
                          shapeText(rows), " before its last, got ", shapeText(shape));
  }
  mlir::Type elementType = tensorType(input).getElementType();
  if (failed(context.expectElementType("a cotangent", cotangent, elementType)) ||
      failed(context.expectRank("a result", result, 3))) {
    return failure();
  }
  int64_t depth = shapeOf(input).back(), columns = shape.back();
  if (transposed) std::swap(depth, columns);
  const int64_t own = shapeOf(result)[0];
  if (failed(context.expectShape("a result", result, {own, depth, columns})) ||
      failed(context.expectPiece(first, "experts", experts, own))) {
    return failure();
  }
  if (tensorType(result).getElementType() == wideType(elementType)) return mlir::success();
  return context.expectElementType("a result", result, elementType);
}

LogicalResult ExpertLinearWeightGradOp::verify() {
  return checkExpertWeightGrad(InferenceContext(getLoc(), getOperationName()), getInput(),
                               getCotangent(), getChoice(), getFirst(), getExperts(),
                               getTransposeWeight(), getResult());
}

int64_t ExpertLinearWeightGradOp::getFlops() {
  return productFlops(elementCount(shapeOf(getChoice())), shapeOf(getInput()).back(),
                      shapeOf(getCotangent()).back(), getType().getShape()[0], getExperts());
}

}  // namespace oriel::ir
