#include "ir/oriel/fused.h"
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

// With or without an addend.
template <typename OpTy>
LogicalResult verifyWeightGrad(OpTy op) {
  InferenceContext context(op.getLoc(), OpTy::getOperationName());
  mlir::Value result = op.getResult();
  if (failed(checkInput(context, op.getInput(), op.getChoice()))) return failure();
  llvm::ArrayRef<int64_t> rows = shapeOf(op.getChoice()), cotangent = shapeOf(op.getCotangent());
  if (cotangent.empty() || cotangent.drop_back() != rows) {
    return context.refuse("expects a cotangent with the dimensions of the choices ",
                          shapeText(rows), " before its last, got ", shapeText(cotangent));
  }
  mlir::Type elementType = elementOf(op.getInput());
  if (failed(context.expectElementType("a cotangent", op.getCotangent(), elementType)) ||
      failed(context.expectRank("a result", result, 3))) {
    return failure();
  }
  int64_t depth = shapeOf(op.getInput()).back(), columns = cotangent.back();
  if (op.getTransposeWeight()) std::swap(depth, columns);
  const int64_t experts = shapeOf(result)[0];
  if (failed(context.expectShape("a result", result, {experts, depth, columns})) ||
      failed(context.expectPiece(op.getFirst(), "experts", op.getExperts(), experts))) {
    return failure();
  }
  if (elementOf(result) == wideType(elementType)) return mlir::success();
  return context.expectElementType("a result", result, elementType);
}

template <typename OpTy>
int64_t weightGradFlops(OpTy op) {
  return productFlops(elementCount(shapeOf(op.getChoice())), shapeOf(op.getInput()).back(),
                      shapeOf(op.getCotangent()).back(), shapeOf(op.getResult())[0],
                      op.getExperts());
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
  mlir::Type elementType = elementOf(adaptor.getInput());
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

LogicalResult ExpertLinearWeightGradOp::verify() { return verifyWeightGrad(*this); }

int64_t ExpertLinearWeightGradOp::getFlops() { return weightGradFlops(*this); }

LogicalResult ExpertLinearWeightGradAddOp::verify() {
  InferenceContext context(getLoc(), getOperationName());
  if (failed(verifyWeightGrad(*this)) ||
      failed(context.expectType("an addend", getAddend(), getType()))) {
    return failure();
  }
  return context.expectElementType("a result", getResult(), wideType(getType().getElementType()));
}

llvm::StringRef ExpertLinearWeightGradAddOp::getKernelName() {
  return "expert_linear_weight_grad_add";
}

bool ExpertLinearWeightGradAddOp::mayOverwrite(unsigned result, unsigned operand) {
  return result == 0 && operand == getAddendMutable().getOperandNumber();
}

int64_t ExpertLinearWeightGradAddOp::getFlops() {
  return weightGradFlops(*this) + elementCount(getType().getShape());
}

}  // namespace oriel::ir
