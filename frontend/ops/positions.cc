#include "frontend/ops/positions.h"

#include <functional>
#include <numeric>

namespace oriel {

using mlir::failure;
using mlir::FailureOr;
using mlir::Value;

namespace {

// `index` plus `size` where it is negative. A constant known to be positive stays as it is.
Value wrapNegative(NodeImporter& n, Value index, int64_t size) {
  if (index) {
    auto ints = constantIntsOf(index);
    if (ints && llvm::all_of(*ints, [](int64_t i) { return i >= 0; })) {
      return index;
    }
  }
  Value isNegative = n.create<ir::LessOp>(index, n.scalarLike(index, 0));
  Value wrapped = n.create<ir::AddOp>(index, n.scalarLike(index, static_cast<double>(size)));
  return n.create<ir::SelectOp>(isNegative, wrapped, index);
}

// Σ index_i * stride_i: the row of a tensor whose leading dimensions are made one.
Value flatIndex(NodeImporter& n, llvm::ArrayRef<Value> indices, llvm::ArrayRef<int64_t> sizes) {
  Value flat;
  for (auto [index, size] : llvm::zip(indices, sizes)) {
    Value wrapped = wrapNegative(n, index, size);
    flat = flat ? n.create<ir::AddOp>(
                      n.create<ir::MulOp>(flat, n.scalarLike(flat, static_cast<double>(size))),
                      wrapped)
                : wrapped;
    if (!flat) {
      return {};
    }
  }
  return flat;
}

}  // namespace

Value iotaLike(NodeImporter& n, Value like, llvm::ArrayRef<int64_t> shape, int64_t dim) {
  if (!like) {
    return {};
  }
  return n.createTyped<ir::IotaOp>(n.tensorType(shape, elementOf(like)), dim);
}

FailureOr<Ints> axesOperand(NodeImporter& n, unsigned index, size_t count, int64_t rank) {
  if (!n.hasOperand(index)) {
    Ints all = llvm::to_vector(llvm::seq<int64_t>(0, static_cast<int64_t>(count)));
    return n.normalizeAxes(all, rank);
  }
  auto given = n.constantInts(index);
  if (failed(given)) {
    return failure();
  }
  if (given->size() != count) {
    return n.error() << "has " << given->size() << " axes, expected " << count;
  }
  return n.normalizeAxes(*given, rank);
}

Value elementPositions(NodeImporter& n, Value indices, Value data, int64_t axis) {
  if (rankOf(indices) != rankOf(data)) {
    n.error() << "the indices have rank " << rankOf(indices) << ", the data " << rankOf(data);
    return {};
  }
  llvm::SmallVector<Value> coordinates;
  for (int64_t dim = 0; dim < rankOf(data); ++dim) {
    if (dim != axis && shapeOf(indices)[dim] > shapeOf(data)[dim]) {
      n.error() << "the indices " << indices.getType() << " reach beyond the data "
                << data.getType();
      return {};
    }
    coordinates.push_back(dim == axis ? indices : iotaLike(n, indices, shapeOf(indices), dim));
  }
  return flatIndex(n, coordinates, shapeOf(data));
}

RowPositions rowPositions(NodeImporter& n, Value indices, Value data, int64_t batch) {
  int64_t rank = rankOf(indices), depth = rank > 0 ? shapeOf(indices).back() : 0;
  if (depth < 1 || batch < 0 || batch >= rank || batch + depth > rankOf(data) ||
      shapeOf(indices).take_front(batch) != shapeOf(data).take_front(batch)) {
    n.error() << "indices " << indices.getType() << " after " << batch
              << " batch dimensions don't fit the data " << data.getType();
    return {};
  }
  Ints shape(shapeOf(indices).drop_back());
  llvm::SmallVector<Value> coordinates;
  for (int64_t dim = 0; dim < batch; ++dim) {
    coordinates.push_back(iotaLike(n, indices, shape, dim));
  }
  for (int64_t i = 0; i < depth; ++i) {
    coordinates.push_back(n.reshape(n.sliceDim(indices, rank - 1, i, i + 1), shape));
  }
  llvm::ArrayRef<int64_t> leading = shapeOf(data).take_front(batch + depth);
  return {flatIndex(n, coordinates, leading), batch + depth};
}

Value asRows(NodeImporter& n, Value data, int64_t depth) {
  llvm::ArrayRef<int64_t> leading = shapeOf(data).take_front(depth);
  Ints shape{std::accumulate(leading.begin(), leading.end(), int64_t{1}, std::multiplies<>())};
  llvm::append_range(shape, shapeOf(data).drop_front(depth));
  return n.reshape(data, shape);
}

}  // namespace oriel
