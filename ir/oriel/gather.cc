// Ops of shape.td that pick or add rows by index, or choose indices.
#include <algorithm>
#include <numeric>

#include "ir/oriel/folding.h"
#include "ir/oriel/inference.h"
#include "ir/oriel/oriel.h"

namespace oriel::ir {

using mlir::failure;
using mlir::LogicalResult;
using mlir::OpFoldResult;

namespace {

// `table` with dimension `dim` replaced by `indices`, less those that both have.
llvm::SmallVector<int64_t> gatheredShape(llvm::ArrayRef<int64_t> table,
                                         llvm::ArrayRef<int64_t> indices, int64_t dim,
                                         int64_t batchDims) {
  llvm::SmallVector<int64_t> shape(table.take_front(dim));
  llvm::append_range(shape, indices.drop_front(batchDims));
  llvm::append_range(shape, table.drop_front(dim + 1));
  return shape;
}

// Leading dimensions that the table and the indices have in common, if any.
LogicalResult checkBatch(const InferenceContext& context, llvm::ArrayRef<int64_t> table,
                         llvm::ArrayRef<int64_t> indices, int64_t dim, int64_t batchDims) {
  if (batchDims == 0) return mlir::success();
  if (batchDims != dim) {
    return context.refuse("expects batch_dims of 0 or of dim, ", dim, ", got ", batchDims);
  }
  if (batchDims <= static_cast<int64_t>(indices.size()) &&
      table.take_front(batchDims) == indices.take_front(batchDims)) {
    return mlir::success();
  }
  return context.refuse("expects the same ", batchDims, " leading dimensions of the table and the ",
                        "indices, got ", shapeText(table), " and ", shapeText(indices));
}

}  // namespace

LogicalResult GatherOp::inferReturnTypes(mlir::MLIRContext*, MaybeLocation location,
                                         Adaptor adaptor,
                                         llvm::SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, getOperationName());
  llvm::ArrayRef<int64_t> input = shapeOf(adaptor.getInput());
  int64_t dim = adaptor.getDim();
  if (failed(context.expectDim("a dim", dim, input.size())) ||
      failed(context.expectPiece(adaptor.getFirst(), "rows", adaptor.getRows(), input[dim])) ||
      failed(
          checkBatch(context, input, shapeOf(adaptor.getIndices()), dim, adaptor.getBatchDims()))) {
    return failure();
  }
  return context.addResult(gatheredShape(input, shapeOf(adaptor.getIndices()), dim,
                                         static_cast<int64_t>(adaptor.getBatchDims())),
                           elementOf(adaptor.getInput()), results);
}

OpFoldResult GatherOp::fold(FoldAdaptor adaptor) {
  auto input = denseConstant(adaptor.getInput());
  auto indices = denseConstant(adaptor.getIndices());
  if (!input || !indices || getFirst() || getBatchDims() != 0 ||
      !mayFoldTo(getType(), input.isSplat()))
    return {};
  if (elementCount(getType().getShape()) == 0) return emptyElements(getType());
  int64_t dim = getDim();
  int64_t rows = shapeOf(getInput())[dim];
  std::vector<int64_t> picked = readElements<int64_t>(indices).values;
  for (int64_t& index : picked) {
    if (index < 0) index += rows;
    if (index < 0 || index >= rows) return {};  // a runtime error, if it is ever run
  }
  // A splat of indices keeps one value.
  auto pickedAt = [&](int64_t i) { return picked[picked.size() == 1 ? 0 : i]; };
  llvm::ArrayRef<int64_t> shape = shapeOf(getInput());
  int64_t count = indices.getNumElements();
  int64_t outer = elementCount(shape.take_front(dim));
  int64_t inner = elementCount(shape.drop_front(dim + 1));
  return visitElementType(input.getElementType(), [&](auto zero) -> OpFoldResult {
    using T = decltype(zero);
    Elements<T> elements = readElements<T>(input);
    if (elements.splat) return writeElements<T>(getType(), elements.values);
    std::vector<T> values;
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < count; ++i) {
        int64_t from = (o * rows + pickedAt(i)) * inner;
        for (int64_t j = 0; j < inner; ++j) values.push_back(elements[from + j]);
      }
    }
    return writeElements<T>(getType(), values);
  });
}

LogicalResult ScatterAddOp::verify() {
  InferenceContext context(getLoc(), getOperationName());
  llvm::ArrayRef<int64_t> table = getType().getShape();
  if (failed(context.expectDim("a dim", getDim(), table.size())) ||
      failed(checkBatch(context, table, shapeOf(getIndices()), getDim(), getBatchDims())) ||
      failed(context.expectShape(
          "updates", getUpdates(),
          gatheredShape(table, shapeOf(getIndices()), getDim(), getBatchDims()))) ||
      failed(context.expectPiece(getFirst(), "rows", getRows(), table[getDim()]))) {
    return failure();
  }
  mlir::Type elementType = getType().getElementType();
  if (wideType(elementOf(getUpdates())) == elementType) return mlir::success();
  return context.expectElementType("updates", getUpdates(), elementType);
}

LogicalResult TopkOp::inferReturnTypes(mlir::MLIRContext* mlirContext, MaybeLocation location,
                                       Adaptor adaptor,
                                       llvm::SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, getOperationName());
  llvm::SmallVector<int64_t> shape(shapeOf(adaptor.getInput()));
  int64_t dim = adaptor.getDim(), k = adaptor.getK();
  if (failed(context.expectDim("a dim", dim, shape.size()))) return failure();
  if (k < 0 || k > shape[dim]) {
    return context.refuse("expects k from 0 to ", shape[dim], ", got ", k);
  }
  shape[dim] = k;
  return context.addResult(shape, mlir::IntegerType::get(mlirContext, 64), results);
}

OpFoldResult TopkOp::fold(FoldAdaptor adaptor) {
  auto input = denseConstant(adaptor.getInput());
  llvm::ArrayRef<int64_t> shape = shapeOf(getInput());
  if (!input || elementCount(shape) > kMaxFoldedElements) return {};
  int64_t length = shape[getDim()], k = getK();
  int64_t outer = elementCount(shape.take_front(getDim()));
  int64_t inner = elementCount(shape.drop_front(getDim() + 1));
  return visitElementType(input.getElementType(), [&](auto zero) -> OpFoldResult {
    using T = decltype(zero);
    Elements<T> elements = readElements<T>(input);
    std::vector<int64_t> values(outer * k * inner), order(length);
    for (int64_t row = 0; row < outer * inner; ++row) {
      int64_t base = row / inner * length * inner + row % inner;
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
        T a = elements[base + i * inner], b = elements[base + j * inner];
        if (a != a || b != b) return getLargest() ? a != a && b == b : a == a && b != b;
        return getLargest() ? a > b : a < b;
      });
      for (int64_t i = 0; i < k; ++i) {
        values[row / inner * k * inner + i * inner + row % inner] = order[i];
      }
    }
    return writeElements<int64_t>(getType(), values);
  });
}

}  // namespace oriel::ir
