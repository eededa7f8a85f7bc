#include "ir/oriel/inference.h"
#include "ir/oriel/oriel.h"

namespace oriel::ir {

using mlir::failure;
using mlir::LogicalResult;
using mlir::success;
using mlir::Value;

namespace {

// The rule that attention and its derivative share; `mask` may be null.
LogicalResult checkAttention(const InferenceContext& context, Value query, Value key, Value value,
                             Value mask) {
  if (failed(context.expectRank("a query", query, 4)) ||
      failed(context.expectRank("a key", key, 4)) ||
      failed(context.expectRank("a value", value, 4))) {
    return failure();
  }
  mlir::Type elementType = tensorType(query).getElementType();
  llvm::ArrayRef<int64_t> q = shapeOf(query);
  llvm::ArrayRef<int64_t> k = shapeOf(key);
  llvm::ArrayRef<int64_t> v = shapeOf(value);
  if (failed(context.expectShape("a key", key, {q[0], k[1], k[2], q[3]})) ||
      failed(context.expectElementType("a key", key, elementType)) ||
      failed(context.expectShape("a value", value, {q[0], k[1], k[2], v[3]})) ||
      failed(context.expectElementType("a value", value, elementType))) {
    return failure();
  }
  if (k[1] == 0 || q[1] % k[1] != 0) {
    return context.refuse("expects a number of key heads that divides the ", q[1],
                          " query heads, got ", k[1]);
  }
  if (!mask) return success();
  llvm::SmallVector<int64_t> scores = {q[0], q[1], q[2], k[2]};
  if (shapeOf(mask).size() != 4 || !broadcastsTo(shapeOf(mask), scores)) {
    return context.refuse("expects a mask of rank 4 that broadcasts to ", shapeText(scores),
                          ", got ", shapeText(shapeOf(mask)));
  }
  mlir::Type maskType = tensorType(mask).getElementType();
  if (maskType.isInteger(1) || maskType == elementType) return success();
  return context.refuse("expects a mask with elements of type i1 or ", elementType, ", got ",
                        mask.getType());
}

// Multiply-adds of the two products; causal masking is not subtracted, as in the peers' MFU.
int64_t attentionMacs(Value query, Value key, Value value) {
  llvm::ArrayRef<int64_t> q = shapeOf(query);
  int64_t scores = boundedProduct({q[0], q[1], q[2], shapeOf(key)[2]});
  int64_t depth = q[3] + shapeOf(value)[3];
  return boundedProduct({scores, depth});
}

}  // namespace

LogicalResult AttentionOp::inferReturnTypes(mlir::MLIRContext*, MaybeLocation location,
                                            Adaptor adaptor,
                                            llvm::SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, getOperationName());
  if (failed(checkAttention(context, adaptor.getQuery(), adaptor.getKey(), adaptor.getValue(),
                            adaptor.getMask()))) {
    return failure();
  }
  llvm::ArrayRef<int64_t> q = shapeOf(adaptor.getQuery());
  mlir::Type elementType = tensorType(adaptor.getQuery()).getElementType();
  if (failed(context.addResult({q[0], q[1], q[2], shapeOf(adaptor.getValue())[3]}, elementType,
                               results))) {
    return failure();
  }
  return context.addResult(q.take_front(3), elementType, results);
}

int64_t AttentionOp::getFlops() {
  return boundedProduct({2, attentionMacs(getQuery(), getKey(), getValue())});
}

LogicalResult AttentionGradOp::inferReturnTypes(mlir::MLIRContext*, MaybeLocation location,
                                                Adaptor adaptor,
                                                llvm::SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, getOperationName());
  Value query = adaptor.getQuery();
  Value value = adaptor.getValue();
  if (failed(checkAttention(context, query, adaptor.getKey(), value, adaptor.getMask()))) {
    return failure();
  }
  llvm::ArrayRef<int64_t> q = shapeOf(query);
  mlir::Type elementType = tensorType(query).getElementType();
  auto outputType = mlir::RankedTensorType::get({q[0], q[1], q[2], shapeOf(value)[3]}, elementType);
  auto rowType = mlir::RankedTensorType::get(q.take_front(3), elementType);
  if (failed(context.expectType("an output", adaptor.getOutput(), outputType)) ||
      failed(context.expectType("a cotangent", adaptor.getCotangent(), outputType)) ||
      failed(context.expectType("a logsumexp", adaptor.getLogsumexp(), rowType))) {
    return failure();
  }
  results.append({query.getType(), adaptor.getKey().getType(), value.getType()});
  return success();
}

// The scores again, and two products for the derivative of each of the forward's two.
int64_t AttentionGradOp::getFlops() {
  return boundedProduct({5, attentionMacs(getQuery(), getKey(), getValue())});
}

LogicalResult RopeOp::inferReturnTypes(mlir::MLIRContext*, MaybeLocation location, Adaptor adaptor,
                                       llvm::SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, getOperationName());
  llvm::ArrayRef<int64_t> shape = shapeOf(adaptor.getInput());
  if (shape.empty() || shape.back() % 2 != 0) {
    return context.refuse("expects an input with an even last dimension, got the shape ",
                          shapeText(shape));
  }
  for (auto [name, table] : {std::pair("cos", adaptor.getCos()), {"sin", adaptor.getSin()}}) {
    if (shapeOf(table).size() != shape.size() || !broadcastsTo(shapeOf(table), shape)) {
      return context.refuse("expects ", name, " of rank ", shape.size(), " that broadcasts to ",
                            shapeText(shape), ", got ", shapeText(shapeOf(table)));
    }
  }
  results.push_back(adaptor.getInput().getType());
  return success();
}

}  // namespace oriel::ir
