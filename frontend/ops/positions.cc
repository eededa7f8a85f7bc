#include "frontend/ops/positions.h"

#include <functional>
#include <numeric>

namespace oriel {

using mlir::failure;
using mlir::FailureOr;
using mlir::Value;

namespace {

// Whether they are indices that an op has found.
bool areNeverNegative(Value indices) {
  while (mlir::Operation* op = indices.getDefiningOp()) {
    if (!llvm::isa<ir::BroadcastOp, ir::CastOp, ir::ReshapeOp, ir::SliceOp, ir::TransposeOp>(op)) {
      return llvm::isa<ir::TopkOp, ir::ArgmaxOp>(op);
    }
    indices = op->getOperand(0);
  }
  return false;
}

// Whether indices need a check: the model's may lead outside a dimension and still name an element.
enum class Trust { kUnchecked, kInRange };

// A position along one of the dimensions that a flat index counts.
struct Coordinate {
  Value index;
  int64_t size;
  Trust trust;
};

// An unchecked coordinate as it is added up, and in `outside`, which may be null, where it or one
// before it does not exist. Null, with an error, for a constant that does not.
Value checkedIndex(NodeImporter& n, const Coordinate& coordinate, Value& outside) {
  Value index = coordinate.index;
  int64_t size = coordinate.size;
  if (auto ints = constantIntsOf(index)) {
    for (int64_t i : *ints) {
      if (i < -size || i >= size) {
        n.error() << "index " << i << " does not exist among " << size;
        return {};
      }
    }
    bool wraps = llvm::any_of(*ints, [](int64_t i) { return i < 0; });
    return wraps ? wrapNegative(n, index, size) : index;
  }
  Value wrapped = wrapNegative(n, index, size);
  Value isOutside = n.create<ir::OrOp>(
      n.create<ir::LessOp>(wrapped, n.scalarLike(wrapped, 0)),
      n.create<ir::GreaterEqualOp>(wrapped, n.scalarLike(wrapped, static_cast<double>(size))));
  outside = outside ? n.create<ir::OrOp>(outside, isOutside) : isOutside;
  return wrapped;
}

// Σ index_i * stride_i: the row of a tensor whose leading dimensions are made one, or the number of
// its rows where an index does not exist. A single index stays as it is: the kernels check it.
Value flatIndex(NodeImporter& n, llvm::ArrayRef<Coordinate> coordinates) {
  Value flat, outside;
  int64_t rows = 1;
  for (const Coordinate& coordinate : coordinates) {
    if (!coordinate.index) {
      return {};
    }
    bool isChecked = coordinate.trust == Trust::kUnchecked &&
                     (coordinates.size() > 1 || constantIntsOf(coordinate.index));
    Value index = isChecked ? checkedIndex(n, coordinate, outside) : coordinate.index;
    auto size = static_cast<double>(coordinate.size);
    flat = flat ? n.create<ir::AddOp>(n.create<ir::MulOp>(flat, n.scalarLike(flat, size)), index)
                : index;
    if (!flat) {
      return {};
    }
    rows *= coordinate.size;
  }
  return outside
             ? n.create<ir::SelectOp>(outside, n.scalarLike(flat, static_cast<double>(rows)), flat)
             : flat;
}

}  // namespace

Value wrapNegative(NodeImporter& n, Value index, int64_t size) {
  if (areNeverNegative(index)) {
    return index;
  }
  Value isNegative = n.create<ir::LessOp>(index, n.scalarLike(index, 0));
  Value wrapped = n.create<ir::AddOp>(index, n.scalarLike(index, static_cast<double>(size)));
  return n.create<ir::SelectOp>(isNegative, wrapped, index);
}

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

bool areOfTopk(Value indices, Value data, int64_t axis) {
  auto topk = indices.getDefiningOp<ir::TopkOp>();
  return topk && static_cast<int64_t>(topk.getDim()) == axis &&
         shapeOf(topk.getInput())[axis] == shapeOf(data)[axis];
}

bool areInRows(Value indices, Value data, int64_t axis) {
  return axis > 0 && axis == rankOf(data) - 1 && rankOf(indices) == rankOf(data) &&
         shapeOf(indices).take_front(axis) == shapeOf(data).take_front(axis);
}

Value rowIndices(NodeImporter& n, Value indices, Value data, int64_t axis) {
  const int64_t rank = rankOf(data), behind = rank - axis - 1;
  if (rankOf(indices) != rank || behind == 0 || constantIntsOf(indices) ||
      shapeOf(indices).take_front(axis) != shapeOf(data).take_front(axis)) {
    return {};
  }
  for (auto [own, all] :
       llvm::zip_equal(shapeOf(indices).take_back(behind), shapeOf(data).take_back(behind))) {
    if (own > all) {
      return {};
    }
  }
  Value rows = indices;
  if (auto broadcast = indices.getDefiningOp<ir::BroadcastOp>()) {
    rows = broadcast.getInput();
  }
  Ints shape(shapeOf(rows));
  auto isOne = [](int64_t size) { return size == 1; };
  if (static_cast<int64_t>(shape.size()) < behind ||
      !llvm::all_of(llvm::ArrayRef(shape).take_back(behind), isOne)) {
    return {};
  }
  shape.resize(shape.size() - behind);
  return n.broadcast(n.reshape(rows, shape), shapeOf(indices).take_front(axis + 1));
}

Value elementPositions(NodeImporter& n, Value indices, Value data, int64_t axis) {
  if (rankOf(indices) != rankOf(data)) {
    n.error() << "the indices have rank " << rankOf(indices) << ", the data " << rankOf(data);
    return {};
  }
  const Trust trust = areOfTopk(indices, data, axis) ? Trust::kInRange : Trust::kUnchecked;
  llvm::SmallVector<Coordinate> coordinates;
  for (int64_t dim = 0; dim < rankOf(data); ++dim) {
    if (dim != axis && shapeOf(indices)[dim] > shapeOf(data)[dim]) {
      n.error() << "the indices " << indices.getType() << " reach beyond the data "
                << data.getType();
      return {};
    }
    int64_t size = shapeOf(data)[dim];
    if (dim == axis) {
      coordinates.push_back({indices, size, trust});
    } else {
      coordinates.push_back({iotaLike(n, indices, shapeOf(indices), dim), size, Trust::kInRange});
    }
  }
  return flatIndex(n, coordinates);
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
  llvm::SmallVector<Coordinate> coordinates;
  for (int64_t dim = 0; dim < batch; ++dim) {
    coordinates.push_back({iotaLike(n, indices, shape, dim), shapeOf(data)[dim], Trust::kInRange});
  }
  for (int64_t i = 0; i < depth; ++i) {
    coordinates.push_back({n.reshape(n.sliceDim(indices, rank - 1, i, i + 1), shape),
                           shapeOf(data)[batch + i], Trust::kUnchecked});
  }
  return {flatIndex(n, coordinates), batch + depth};
}

Value asRows(NodeImporter& n, Value data, int64_t depth) {
  llvm::ArrayRef<int64_t> leading = shapeOf(data).take_front(depth);
  Ints shape{std::accumulate(leading.begin(), leading.end(), int64_t{1}, std::multiplies<>())};
  llvm::append_range(shape, shapeOf(data).drop_front(depth));
  return n.reshape(data, shape);
}

}  // namespace oriel
