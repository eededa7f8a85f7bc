// Tensors with some rows or elements replaced or added to.
#include <functional>
#include <numeric>

#include "frontend/node_importer.h"
#include "frontend/op_registry.h"
#include "frontend/ops/ops.h"
#include "frontend/ops/positions.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

namespace oriel {
namespace {

using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::Value;

// Up to so many pieces a constant choice of rows is a concatenation of slices, beyond a gather.
constexpr size_t kMaxPieces = 4;

// Where each slab of a scatter's result comes from: slab s of the data is s, slab u of the updates
// is (number of slabs of the data) + u.
using Sources = Ints;

// Of several updates of a slab, which ONNX forbids, the last one counts, as in ONNX Runtime, with a
// warning unless all are the same number. Fails, with an error, for a position outside the data.
FailureOr<Sources> sourcesOf(NodeImporter& n, llvm::ArrayRef<int64_t> positions, int64_t slabs,
                             Value updates) {
  if (slabs > kMaxEnumerated) {
    return n.error() << "scatters into " << slabs << " rows, more than " << kMaxEnumerated;
  }
  Sources sources = llvm::to_vector(llvm::seq<int64_t>(0, slabs));
  bool isTwice = false;
  for (auto [update, position] : llvm::enumerate(positions)) {
    int64_t at = position < 0 ? position + slabs : position;
    if (at < 0 || at >= slabs) {
      return n.error() << "index " << position << " does not exist among " << slabs;
    }
    isTwice |= sources[at] >= slabs;
    sources[at] = slabs + static_cast<int64_t>(update);
  }
  if (isTwice && !constantScalarOf(updates)) {
    mlir::emitWarning(n.location())
        << "its constant indices name a place several times, which ONNX forbids without a "
           "reduction: the last update counts. If the exporter has lost one (of index_add, or "
           "scatter_reduce), sum the updates in another way";
  }
  return sources;
}

// Pieces of data and updates along `dim`, joined.
Value choose(NodeImporter& n, Value data, Value updates, const Sources& sources, int64_t dim) {
  int64_t slabs = shapeOf(data)[dim];
  llvm::SmallVector<Value> pieces;
  for (size_t begin = 0, end; begin < sources.size() && pieces.size() <= kMaxPieces; begin = end) {
    for (end = begin + 1; end < sources.size() && sources[end] == sources[end - 1] + 1 &&
                          (sources[end] < slabs) == (sources[begin] < slabs);) {
      ++end;
    }
    bool isOld = sources[begin] < slabs;
    int64_t start = isOld ? sources[begin] : sources[begin] - slabs;
    pieces.push_back(
        n.sliceDim(isOld ? data : updates, dim, start, start + static_cast<int64_t>(end - begin)));
  }
  if (pieces.empty()) {
    return data;
  }
  if (pieces.size() <= kMaxPieces) {
    return n.concat(pieces, dim);
  }
  return n.gather(n.concat({data, updates}, dim), n.constantOf(sources), dim);
}

// Of rows [b.., r], the sums of updates [b.., u, ..] at positions [b.., u], with `batch` dimensions
// b.
Value addRows(NodeImporter& n, mlir::RankedTensorType sums, Value positions, Value updates,
              int64_t batch) {
  return n.createTyped<ir::ScatterAddOp>(sums, positions, updates, batch, OptionalValue{},
                                         /*rows=*/int64_t{0}, batch);
}

// data [b.., r, ..], updates [b.., u, ..], positions [b.., u]: the number of the update of each
// row, counted from u, comes by the sum over its updates. Two updates of one row, which ONNX
// forbids, make a number beyond the last one's, which the gather refuses; equal updates may meet.
Value replaceRows(NodeImporter& n, Value data, Value positions, Value updates, int64_t batch) {
  Ints rows(shapeOf(data).take_front(batch + 1));
  mlir::Builder& b = n.builder();
  Value number = n.createTyped<ir::IotaOp>(n.tensorType(shapeOf(positions), b.getF64Type()), batch);
  int64_t count = shapeOf(updates)[batch];
  number = n.create<ir::AddOp>(number, n.scalarLike(number, static_cast<double>(count)));
  number = addRows(n, n.tensorType(rows, b.getF64Type()), positions, number, batch);
  number = n.cast(number, b.getI64Type());
  Value isReplaced = n.create<ir::GreaterOp>(number, n.scalarLike(number, 0));
  Ints column(rows);
  column.resize(rankOf(data), 1);
  isReplaced = n.reshape(isReplaced, column);
  if (auto all = constantScalarOf(updates)) {
    return n.create<ir::SelectOp>(isReplaced, n.scalarLike(data, *all), data);
  }
  Value update = n.create<ir::SubOp>(number, n.scalarLike(number, static_cast<double>(count)));
  update = n.create<ir::MaxOp>(update, n.scalarLike(update, 0));
  return n.create<ir::SelectOp>(isReplaced, n.gatherRows(updates, update, batch), data);
}

// Of each row of data [b.., r, ..], the sum of its updates [b.., p.., ..] at positions [b.., p..].
// Those of integers in f64, which are exact up to 2^53.
Value sumsOfRows(NodeImporter& n, Value data, Value positions, Value updates, int64_t batch) {
  mlir::Type element = elementOf(data);
  if (!llvm::isa<mlir::FloatType>(element)) {
    updates = n.cast(updates, n.builder().getF64Type());
  }
  auto type = n.tensorType(shapeOf(data), elementOf(updates));
  return n.cast(addRows(n, type, positions, updates, batch), element);
}

// data [b.., r, ..], updates [b.., p.., ..] and positions [b.., p..] of its rows.
Value scatterRows(NodeImporter& n, Value data, Value positions, Value updates, int64_t batch) {
  if (!data || !positions || !updates) {
    return {};
  }
  std::string reduction = n.attrString("reduction", "none");
  if (reduction == "add") {
    return n.create<ir::AddOp>(data, sumsOfRows(n, data, positions, updates, batch));
  }
  if (reduction != "none") {
    n.error() << "the reduction \"" << reduction
              << "\" is not supported, only \"none\" and \"add\"";
    return {};
  }
  if (batch > 0) {
    return replaceRows(n, data, positions, updates, batch);
  }
  Ints shape(shapeOf(data));
  shape[0] = tensorType(positions).getNumElements();
  updates = n.reshape(updates, shape);
  if (auto constant = constantIntsOf(positions)) {
    auto sources = sourcesOf(n, *constant, shapeOf(data)[0], updates);
    return succeeded(sources) ? choose(n, data, updates, *sources, 0) : Value();
  }
  return replaceRows(n, data, n.reshape(positions, {shape[0]}), updates, batch);
}

// The rectangle of leading dimensions that constant indices [.., depth] name in order: dimension d
// from starts[d] on, as many as sizes[d].
struct Rectangle {
  Ints starts, sizes;
};
std::optional<Rectangle> rectangleOf(Value indices) {
  auto constant = constantIntsOf(indices);
  const int64_t depth = shapeOf(indices).empty() ? 0 : shapeOf(indices).back();
  if (!constant || constant->empty() || depth < 1) {
    return std::nullopt;
  }
  llvm::ArrayRef<int64_t> all(*constant);
  Rectangle rectangle;
  int64_t count = 1;
  for (auto [first, last] : llvm::zip_equal(all.take_front(depth), all.take_back(depth))) {
    if (first < 0 || last < first || last - first >= static_cast<int64_t>(all.size())) {
      return std::nullopt;
    }
    rectangle.starts.push_back(first);
    rectangle.sizes.push_back(last - first + 1);
    count *= rectangle.sizes.back();
    if (count > static_cast<int64_t>(all.size())) {
      return std::nullopt;
    }
  }
  if (count * depth != static_cast<int64_t>(all.size())) {
    return std::nullopt;
  }
  const Ints strides = mlir::computeSuffixProduct(rectangle.sizes);
  for (int64_t i = 0; i < count; ++i) {
    for (auto [d, offset] : llvm::enumerate(mlir::delinearize(i, strides))) {
      if (all[i * depth + d] != rectangle.starts[d] + offset) {
        return std::nullopt;
      }
    }
  }
  return rectangle;
}

// `data` with `updates`, of the rectangle's sizes, in its place, from dimension `dim` on: slices
// around it, dimension by dimension. So dimensions that it takes whole stay as they are, batches
// for instance.
Value replaceRectangle(NodeImporter& n, Value data, Value updates, const Rectangle& rectangle,
                       size_t dim) {
  size_t last = rectangle.sizes.size();
  auto isWhole = [&](size_t d) { return rectangle.sizes[d] == shapeOf(data)[d]; };
  while (dim < last && isWhole(dim)) {
    ++dim;
  }
  while (last > dim && isWhole(last - 1)) {
    --last;
  }
  if (dim == last) {
    return updates;
  }
  const auto along = static_cast<int64_t>(dim);
  const int64_t start = rectangle.starts[dim], end = start + rectangle.sizes[dim];
  const int64_t size = shapeOf(data)[along];
  Value middle = updates;
  if (dim + 1 < last) {
    middle = replaceRectangle(n, n.sliceDim(data, along, start, end), updates, rectangle, dim + 1);
  }
  llvm::SmallVector<Value> pieces;
  if (start > 0) {
    pieces.push_back(n.sliceDim(data, along, 0, start));
  }
  pieces.push_back(middle);
  if (end < size) {
    pieces.push_back(n.sliceDim(data, along, end, size));
  }
  return n.concat(pieces, along);
}

// data[indices[.., :], ..] = updates[.., ..]. A merge of image features never gets here, see
// frontend/masked_scatter.h.
LogicalResult importScatterND(NodeImporter& n) {
  Value data = n.operand(0), indices = n.operand(1), updates = n.operand(2);
  if (!data || !indices || !updates) {
    return failure();
  }
  RowPositions rows = rowPositions(n, indices, data, /*batch=*/0);
  if (!rows.positions) {
    return failure();
  }
  Ints expected(shapeOf(rows.positions));
  llvm::append_range(expected, shapeOf(data).drop_front(rows.depth));
  if (shapeOf(updates) != llvm::ArrayRef<int64_t>(expected)) {
    return n.error() << "the updates " << updates.getType() << " don't fit the indices "
                     << indices.getType() << " and the data " << data.getType();
  }
  std::optional<Rectangle> rectangle;
  if (rows.depth > 1 && n.attrString("reduction", "none") == "none") {
    rectangle = rectangleOf(indices);
  }
  if (rectangle) {
    for (auto [d, start] : llvm::enumerate(rectangle->starts)) {
      if (start + rectangle->sizes[d] > shapeOf(data)[d]) {
        return n.error() << "index " << start + rectangle->sizes[d] - 1 << " does not exist among "
                         << shapeOf(data)[d];
      }
    }
    Ints shape(rectangle->sizes);
    llvm::append_range(shape, shapeOf(data).drop_front(rows.depth));
    return n.replace(replaceRectangle(n, data, n.reshape(updates, shape), *rectangle, /*dim=*/0));
  }
  Value result = scatterRows(n, asRows(n, data, rows.depth), rows.positions, updates, /*batch=*/0);
  return n.replace(n.reshape(result, shapeOf(data)));
}

// Constant indices that name whole slabs along the axis: one position for each slab of the updates.
std::optional<Ints> slabPositions(Value indices, Value data, int64_t axis) {
  auto shape = shapeOf(indices);
  for (int64_t dim = 0; dim < rankOf(data); ++dim) {
    if (dim != axis && shape[dim] != shapeOf(data)[dim]) {
      return std::nullopt;
    }
  }
  if (auto all = constantScalarOf(indices); all && shape[axis] <= kMaxEnumerated) {
    return Ints(shape[axis], static_cast<int64_t>(*all));
  }
  auto ints = constantIntsOf(indices);
  if (!ints || ints->empty()) {
    return std::nullopt;
  }
  auto inner = shape.drop_front(axis + 1);
  int64_t step = std::accumulate(inner.begin(), inner.end(), int64_t{1}, std::multiplies<>());
  Ints positions;
  for (int64_t slab = 0; slab < shape[axis]; ++slab) {
    positions.push_back((*ints)[slab * step]);
  }
  for (auto [at, index] : llvm::enumerate(*ints)) {
    if (index != positions[static_cast<int64_t>(at) / step % shape[axis]]) {
      return std::nullopt;
    }
  }
  return positions;
}

// Gates of experts: constant data, of which no element has two updates, so that adding one to 0 is
// setting it. Null for what is neither floats nor set to one number.
Value scatterOfLargest(NodeImporter& n, Value data, Value indices, Value updates, int64_t axis) {
  std::optional<double> elsewhere = constantScalarOf(data), set = constantScalarOf(updates);
  const bool areFloats = llvm::isa<mlir::FloatType>(elementOf(data));
  if (!elsewhere || (!set && !areFloats)) {
    return {};
  }
  auto added = [&](Value values) {
    mlir::RankedTensorType type = n.tensorType(shapeOf(data), elementOf(values));
    return n.createTyped<ir::ScatterAddOp>(type, indices, values, axis, OptionalValue{},
                                           /*rows=*/int64_t{0}, /*batch_dims=*/axis);
  };
  if (*elsewhere == 0 && areFloats) {
    return added(updates);
  }
  Value ones = n.splat(n.tensorType(shapeOf(indices), n.builder().getF32Type()), 1);
  Value isSet = n.create<ir::GreaterOp>(added(ones), n.scalarLike(ones, 0));
  if (!elementOf(data).isInteger(1)) {
    return n.create<ir::SelectOp>(isSet, set ? n.scalarLike(data, *set) : added(updates), data);
  }
  if (*set == *elsewhere) {
    return data;
  }
  return *set != 0 ? isSet : n.create<ir::NotOp>(isSet);
}

// data[indices[i, j], j] = updates[i, j] (for axis 0)
LogicalResult importScatterElements(NodeImporter& n) {
  Value data = n.operand(0), indices = n.operand(1), updates = n.operand(2);
  if (!data || !indices || !updates) {
    return failure();
  }
  auto axis = n.normalizeAxis(n.attrInt("axis", 0), rankOf(data));
  if (failed(axis)) {
    return failure();
  }
  if (shapeOf(updates) != shapeOf(indices) || rankOf(indices) != rankOf(data)) {
    return n.error() << "the updates " << updates.getType() << " and indices " << indices.getType()
                     << " don't fit the data " << data.getType();
  }
  if (n.attrString("reduction", "none") == "none") {
    if (auto positions = slabPositions(indices, data, *axis)) {
      auto sources = sourcesOf(n, *positions, shapeOf(data)[*axis], updates);
      return failed(sources) ? failure() : n.replace(choose(n, data, updates, *sources, *axis));
    }
  }
  if (n.attrString("reduction", "none") == "none" && areOfTopk(indices, data, *axis) &&
      areInRows(indices, data, *axis)) {
    if (Value result = scatterOfLargest(n, data, indices, updates, *axis)) {
      return n.replace(result);
    }
  }
  const int64_t behind = rankOf(data) - *axis - 1;
  if (shapeOf(indices).take_back(behind) == shapeOf(data).take_back(behind)) {
    if (Value rows = rowIndices(n, indices, data, *axis)) {
      return n.replace(scatterRows(n, data, rows, updates, *axis));
    }
  }
  Value positions = elementPositions(n, indices, data, *axis);
  if (!positions) {
    return failure();
  }
  Value flat = scatterRows(n, asRows(n, data, rankOf(data)), positions, updates, /*batch=*/0);
  return n.replace(n.reshape(flat, shapeOf(data)));
}

}  // namespace

void registerScatterOps(OpRegistry& registry) {
  registry.add("ScatterND", 13, importScatterND);
  registry.add("ScatterElements", 13, importScatterElements);
}

}  // namespace oriel
