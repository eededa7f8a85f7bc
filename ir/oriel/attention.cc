#include "ir/oriel/inference.h"
#include "ir/oriel/oriel.h"

namespace oriel::ir {

using mlir::failure;
using mlir::LogicalResult;
using mlir::success;
using mlir::Value;

namespace {

// Sizes of an attention, whichever layout its operands have.
struct AttentionSizes {
  int64_t batch, heads, groups, queries, keys, depth, valueDepth;
  bool sequenceFirst;

  AttentionSizes(Value query, Value key, Value value, bool sequenceFirst)
      : sequenceFirst(sequenceFirst) {
    int head = sequenceFirst ? 2 : 1, row = 3 - head;
    llvm::ArrayRef<int64_t> q = shapeOf(query), k = shapeOf(key);
    batch = q[0];
    heads = q[head];
    queries = q[row];
    depth = q[3];
    groups = k[head];
    keys = k[row];
    valueDepth = shapeOf(value)[3];
  }

  llvm::SmallVector<int64_t> shape(int64_t headCount, int64_t rows, int64_t columns) const {
    if (sequenceFirst) return {batch, rows, headCount, columns};
    return {batch, headCount, rows, columns};
  }
  // Multiply-adds of the two products; what a mask hides is not subtracted, as in the peers' MFU.
  int64_t macs() const {
    return boundedProduct({boundedProduct({batch, heads, queries, keys}), depth + valueDepth});
  }
};

template <typename OpOrAdaptor>
AttentionSizes sizesOf(OpOrAdaptor op) {
  return AttentionSizes(op.getQuery(), op.getKey(), op.getValue(), op.getSequenceFirst());
}

// The rule that attention and its derivative share.
template <typename Adaptor>
LogicalResult checkAttention(const InferenceContext& context, Adaptor adaptor) {
  Value query = adaptor.getQuery(), key = adaptor.getKey(), value = adaptor.getValue();
  if (failed(context.expectRank("a query", query, 4)) ||
      failed(context.expectRank("a key", key, 4)) ||
      failed(context.expectRank("a value", value, 4))) {
    return failure();
  }
  mlir::Type elementType = elementOf(query);
  AttentionSizes sizes = sizesOf(adaptor);
  if (failed(
          context.expectShape("a key", key, sizes.shape(sizes.groups, sizes.keys, sizes.depth))) ||
      failed(context.expectElementType("a key", key, elementType)) ||
      failed(context.expectShape("a value", value,
                                 sizes.shape(sizes.groups, sizes.keys, sizes.valueDepth))) ||
      failed(context.expectElementType("a value", value, elementType))) {
    return failure();
  }
  if (sizes.groups == 0 || sizes.heads % sizes.groups != 0) {
    return context.refuse("expects a number of key heads that divides the ", sizes.heads,
                          " query heads, got ", sizes.groups);
  }
  if (adaptor.getWindow() < 0) {
    return context.refuse("expects a window of at least 0, got ", adaptor.getWindow());
  }
  // Written so that a NaN is refused.
  if (!(adaptor.getSoftcap() >= 0)) return context.refuse("expects a softcap of at least 0");
  if (Value sink = adaptor.getSink()) {
    if (failed(context.expectShape("a sink", sink, {sizes.heads}))) return failure();
    if (elementOf(sink) != elementType && elementOf(sink) != wideType(elementType)) {
      return context.refuse("expects a sink with elements of type ", elementType, ", got ",
                            sink.getType());
    }
  }
  Value mask = adaptor.getMask();
  if (!mask) return success();
  llvm::SmallVector<int64_t> scores = {sizes.batch, sizes.heads, sizes.queries, sizes.keys};
  if (shapeOf(mask).size() != 4 || !broadcastsTo(shapeOf(mask), scores)) {
    return context.refuse("expects a mask of rank 4 that broadcasts to ", shapeText(scores),
                          ", got ", shapeText(shapeOf(mask)));
  }
  mlir::Type maskType = elementOf(mask);
  if (maskType.isInteger(1) || maskType == elementType || maskType == wideType(elementType)) {
    return success();
  }
  return context.refuse("expects a mask with elements of type i1 or ", elementType, ", got ",
                        mask.getType());
}

}  // namespace

LogicalResult AttentionOp::inferReturnTypes(mlir::MLIRContext*, MaybeLocation location,
                                            Adaptor adaptor,
                                            llvm::SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, getOperationName());
  if (failed(checkAttention(context, adaptor))) return failure();
  AttentionSizes sizes = sizesOf(adaptor);
  mlir::Type elementType = elementOf(adaptor.getQuery());
  if (failed(context.addResult(sizes.shape(sizes.heads, sizes.queries, sizes.valueDepth),
                               elementType, results))) {
    return failure();
  }
  return context.addResult({sizes.batch, sizes.heads, sizes.queries}, wideType(elementType),
                           results);
}

int64_t AttentionOp::getFlops() { return boundedProduct({2, sizesOf(*this).macs()}); }

LogicalResult AttentionGradOp::inferReturnTypes(mlir::MLIRContext*, MaybeLocation location,
                                                Adaptor adaptor,
                                                llvm::SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, getOperationName());
  if (failed(checkAttention(context, adaptor))) return failure();
  AttentionSizes sizes = sizesOf(adaptor);
  mlir::Type elementType = elementOf(adaptor.getQuery());
  auto outputType = mlir::RankedTensorType::get(
      sizes.shape(sizes.heads, sizes.queries, sizes.valueDepth), elementType);
  auto rowType =
      mlir::RankedTensorType::get({sizes.batch, sizes.heads, sizes.queries}, wideType(elementType));
  if (failed(context.expectType("an output", adaptor.getOutput(), outputType)) ||
      failed(context.expectType("a cotangent", adaptor.getCotangent(), outputType)) ||
      failed(context.expectType("a logsumexp", adaptor.getLogsumexp(), rowType))) {
    return failure();
  }
  results.append(
      {adaptor.getQuery().getType(), adaptor.getKey().getType(), adaptor.getValue().getType()});
  return success();
}

// The scores again, and two products for the derivative of each of the forward's two.
int64_t AttentionGradOp::getFlops() { return boundedProduct({5, sizesOf(*this).macs()}); }

LogicalResult RopeOp::inferReturnTypes(mlir::MLIRContext*, MaybeLocation location, Adaptor adaptor,
                                       llvm::SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, getOperationName());
  llvm::ArrayRef<int64_t> shape = shapeOf(adaptor.getInput());
  if (shape.empty()) return context.refuse("expects an input of rank at least 1, got rank 0");
  int64_t rotated = adaptor.getRotaryDim() == 0 ? shape.back() : adaptor.getRotaryDim();
  if (rotated < 0 || rotated > shape.back() || rotated % 2 != 0) {
    return context.refuse("expects an even number of rotated elements up to the last dimension, ",
                          "got ", rotated, " of the shape ", shapeText(shape));
  }
  mlir::Type elementType = elementOf(adaptor.getInput());
  for (auto [name, table] : {std::pair("cos", adaptor.getCos()), {"sin", adaptor.getSin()}}) {
    if (elementOf(table) != wideType(elementType) &&
        failed(context.expectElementType(name, table, elementType))) {
      return failure();
    }
    llvm::SmallVector<int64_t> rows(shape.drop_back());
    llvm::ArrayRef<int64_t> got = shapeOf(table);
    bool fits = got.size() == shape.size() && broadcastsTo(got.drop_back(), rows) &&
                llvm::is_contained({rotated, rotated / 2, int64_t{1}}, got.back());
    if (!fits) {
      rows.push_back(rotated);
      return context.refuse("expects ", name, " of rank ", shape.size(), " that broadcasts to ",
                            shapeText(rows), " or has half its last dimension, got ",
                            shapeText(got));
    }
  }
  results.push_back(adaptor.getInput().getType());
  return success();
}

}  // namespace oriel::ir
