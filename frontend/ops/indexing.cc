// Ops that pick elements: slices, padding, gathers, triangles, running sums, largest elements.
#include <limits>
#include <numeric>

#include "frontend/node_importer.h"
#include "frontend/op_registry.h"
#include "frontend/ops/ops.h"

namespace oriel {
namespace {

using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::Value;

// Operand `index` as axes, or 0, 1, .. `count` where it is left out.
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

// Starts and ends count from the end where negative and are clamped to the tensor, as in Python.
LogicalResult importSlice(NodeImporter& n) {
  Value result = n.operand(0);
  auto starts = n.constantInts(1);
  auto ends = failed(starts) ? starts : n.constantInts(2);
  if (!result || failed(ends)) {
    return failure();
  }
  auto axes = axesOperand(n, 3, starts->size(), rankOf(result));
  FailureOr<Ints> steps = n.hasOperand(4) ? n.constantInts(4) : Ints(starts->size(), 1);
  if (failed(axes) || failed(steps)) {
    return failure();
  }
  if (ends->size() != starts->size() || steps->size() != starts->size()) {
    return n.error() << "has " << starts->size() << " starts, " << ends->size() << " ends and "
                     << steps->size() << " steps";
  }
  Ints lows(rankOf(result), 0), limits(shapeOf(result)), strides(rankOf(result), 1);
  for (auto [start, end, step, axis] : llvm::zip(*starts, *ends, *steps, *axes)) {
    int64_t size = shapeOf(result)[axis];
    if (step == 0) {
      return n.error() << "the step along axis " << axis << " is 0";
    }
    auto clamp = [&](int64_t at, int64_t low, int64_t high) {
      return std::clamp<int64_t>(at < 0 ? std::max<int64_t>(at, -size - 1) + size : at, low, high);
    };
    if (step > 0) {
      lows[axis] = clamp(start, 0, size);
      limits[axis] = std::max(lows[axis], clamp(end, 0, size));
      strides[axis] = step;
      continue;
    }
    if (size > kMaxEnumerated) {
      return n.error() << "reverses " << size << " elements, more than " << kMaxEnumerated;
    }
    // Backwards: rows picked one by one.
    Ints picked;
    int64_t last = clamp(end, -1, size - 1);
    for (int64_t at = clamp(start, -1, size - 1); at > last;) {
      picked.push_back(at);
      if (step < -size) {
        break;
      }
      at += step;
    }
    result = n.gather(result, n.constantOf(picked), axis);
    if (!result) {
      return failure();
    }
    limits[axis] = static_cast<int64_t>(picked.size());
  }
  return n.replace(n.create<ir::SliceOp>(result, llvm::ArrayRef<int64_t>(lows),
                                         llvm::ArrayRef<int64_t>(limits),
                                         llvm::ArrayRef<int64_t>(strides)));
}

// A negative amount of padding crops.
LogicalResult importPad(NodeImporter& n) {
  Value input = n.operand(0);
  auto pads = n.constantInts(1);
  if (!input || failed(pads)) {
    return failure();
  }
  if (std::string mode = n.attrString("mode", "constant"); mode != "constant") {
    return n.error() << "the mode \"" << mode << "\" is not supported, only \"constant\"";
  }
  auto axes = axesOperand(n, 3, pads->size() / 2, rankOf(input));
  if (failed(axes)) {
    return failure();
  }
  std::optional<double> value = 0.0;
  if (n.hasOperand(2)) {
    value = constantScalarOf(n.operand(2));
    if (!value) {
      return n.error() << "the padding value must be known at compile time";
    }
  }
  Ints low(rankOf(input), 0), high(low), interior(low), starts(low), limits(shapeOf(input));
  bool crops = false, grows = false;
  for (auto [i, axis] : llvm::enumerate(*axes)) {
    int64_t before = (*pads)[i], after = (*pads)[i + axes->size()], size = limits[axis];
    constexpr int64_t kLimit = int64_t{1} << 40;
    if (before > kLimit || after > kLimit || before < -size || after < -size ||
        size + std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0) < 0) {
      return n.error() << "pads " << before << " and " << after << " don't fit the size " << size;
    }
    crops |= before < 0 || after < 0;
    grows |= before > 0 || after > 0;
    starts[axis] = std::max<int64_t>(0, -before);
    limits[axis] = size - std::max<int64_t>(0, -after);
    low[axis] = std::max<int64_t>(0, before);
    high[axis] = std::max<int64_t>(0, after);
  }
  Value result = crops ? n.slice(input, starts, limits) : input;
  if (grows) {
    using Array = llvm::ArrayRef<int64_t>;
    result = n.create<ir::PadOp>(result, Array(low), Array(high), Array(interior), *value);
  }
  return n.replace(result);
}

LogicalResult importGather(NodeImporter& n) {
  Value input = n.operand(0), indices = n.operand(1);
  if (!input || !indices) {
    return failure();
  }
  auto axis = n.normalizeAxis(n.attrInt("axis", 0), rankOf(input));
  return failed(axis) ? failure() : n.replace(n.gather(input, indices, *axis));
}

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

// 0, 1, .. along dimension `dim` of a shape.
Value iota(NodeImporter& n, Value like, llvm::ArrayRef<int64_t> shape, int64_t dim) {
  if (!like) {
    return {};
  }
  return n.createTyped<ir::IotaOp>(n.tensorType(shape, elementOf(like)), dim);
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

// result[i, j] = input[indices[i, j], j] (for axis 0): a gather from the flattened input.
LogicalResult importGatherElements(NodeImporter& n) {
  Value input = n.operand(0), indices = n.operand(1);
  if (!input || !indices) {
    return failure();
  }
  auto axis = n.normalizeAxis(n.attrInt("axis", 0), rankOf(input));
  if (failed(axis)) {
    return failure();
  }
  if (rankOf(indices) != rankOf(input)) {
    return n.error() << "the indices have rank " << rankOf(indices) << ", the input "
                     << rankOf(input);
  }
  llvm::SmallVector<Value> coordinates;
  for (int64_t dim = 0; dim < rankOf(input); ++dim) {
    coordinates.push_back(dim == *axis ? indices : iota(n, indices, shapeOf(indices), dim));
  }
  Value flat = n.reshape(input, {typeOf(input).getNumElements()});
  return n.replace(n.gather(flat, flatIndex(n, coordinates, shapeOf(input)), 0));
}

// indices[.., k] name rows of the input's first k dimensions, after `batch_dims` common ones.
LogicalResult importGatherND(NodeImporter& n) {
  Value input = n.operand(0), indices = n.operand(1);
  if (!input || !indices) {
    return failure();
  }
  int64_t batch = n.attrInt("batch_dims", 0), rank = rankOf(indices);
  int64_t depth = rank > 0 ? shapeOf(indices).back() : 0;
  if (depth < 1 || batch < 0 || batch >= rank || batch + depth > rankOf(input)) {
    return n.error() << "indices of depth " << depth << " after " << batch
                     << " batch dimensions don't fit an input of rank " << rankOf(input);
  }
  Ints shape(shapeOf(indices).drop_back());
  llvm::SmallVector<Value> coordinates;
  for (int64_t dim = 0; dim < batch; ++dim) {
    coordinates.push_back(iota(n, indices, shape, dim));
  }
  for (int64_t i = 0; i < depth; ++i) {
    coordinates.push_back(n.reshape(n.sliceDim(indices, rank - 1, i, i + 1), shape));
  }
  llvm::ArrayRef<int64_t> leading = shapeOf(input).take_front(batch + depth);
  Ints flatShape{std::accumulate(leading.begin(), leading.end(), int64_t{1}, std::multiplies<>())};
  llvm::append_range(flatShape, shapeOf(input).drop_front(batch + depth));
  return n.replace(n.gather(n.reshape(input, flatShape), flatIndex(n, coordinates, leading), 0));
}

// Keeps the upper triangle (column - row >= k) or the lower one (column - row <= k).
LogicalResult importTrilu(NodeImporter& n) {
  Value input = n.operand(0);
  if (!input) {
    return failure();
  }
  FailureOr<int64_t> k = n.hasOperand(1) ? n.constantInt(1) : int64_t{0};
  if (failed(k)) {
    return failure();
  }
  if (rankOf(input) < 2) {
    return n.error() << "needs a tensor of rank 2 or more";
  }
  bool upper = n.attrInt("upper", 1) != 0;
  int64_t rows = shapeOf(input)[rankOf(input) - 2], columns = shapeOf(input).back();
  if (rows > kMaxEnumerated || columns > kMaxEnumerated || rows * columns > kMaxEnumerated) {
    return n.error() << "has " << rows << " x " << columns << " elements, more than "
                     << kMaxEnumerated;
  }
  llvm::SmallVector<bool> keep;
  keep.reserve(rows * columns);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      keep.push_back(upper ? column - row >= *k : column - row <= *k);
    }
  }
  return n.replace(
      n.create<ir::SelectOp>(n.boolConstant(keep, {rows, columns}), input, n.scalarLike(input, 0)));
}

LogicalResult importCumSum(NodeImporter& n) {
  Value input = n.operand(0);
  auto axis = n.constantInt(1);
  if (!input || failed(axis) || failed(axis = n.normalizeAxis(*axis, rankOf(input)))) {
    return failure();
  }
  return n.replace(n.create<ir::CumsumOp>(input, *axis, n.attrInt("exclusive", 0) != 0,
                                          n.attrInt("reverse", 0) != 0));
}

template <bool kLargest>
LogicalResult importArgExtreme(NodeImporter& n) {
  Value input = n.operand(0);
  if (!input) {
    return failure();
  }
  if (n.attrInt("select_last_index", 0) != 0) {
    return n.error() << "select_last_index = 1 is not supported";
  }
  auto axis = n.normalizeAxis(n.attrInt("axis", 0), rankOf(input));
  if (failed(axis)) {
    return failure();
  }
  if (!kLargest) {
    input = n.createLike<ir::NegOp>(input);
  }
  return n.replace(n.create<ir::ArgmaxOp>(input, *axis, n.attrInt("keepdims", 1) != 0));
}

}  // namespace

void registerIndexingOps(OpRegistry& registry) {
  registry.add("Slice", 13, importSlice);
  registry.add("Pad", 13, importPad);
  registry.add("Gather", 13, importGather);
  registry.add("GatherElements", 13, importGatherElements);
  registry.add("GatherND", 13, importGatherND);
  registry.add("Trilu", 14, importTrilu);
  registry.add("CumSum", 11, importCumSum);
  registry.add("ArgMax", 13, importArgExtreme<true>);
  registry.add("ArgMin", 13, importArgExtreme<false>);
}

}  // namespace oriel
