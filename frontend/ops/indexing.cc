// Ops that pick elements: slices, gathers, triangles, running sums, largest elements.
#include <limits>
#include <numeric>

#include "frontend/node_importer.h"
#include "frontend/op_registry.h"
#include "frontend/ops/ops.h"
#include "frontend/ops/positions.h"

namespace oriel {
namespace {

using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::Value;

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

LogicalResult importGather(NodeImporter& n) {
  Value input = n.operand(0), indices = n.operand(1);
  if (!input || !indices) {
    return failure();
  }
  auto axis = n.normalizeAxis(n.attrInt("axis", 0), rankOf(input));
  return failed(axis) ? failure() : n.replace(n.gather(input, indices, *axis));
}

// result[i, j] = input[indices[i, j], j] (for axis 0): along the last dimension each row by indices
// of its own, whole rows where all their elements have the same index, else from the flattened
// input.
Value gatherElements(NodeImporter& n, Value input, Value indices, int64_t axis) {
  if (Value rows = rowIndices(n, indices, input, axis)) {
    for (int64_t dim = axis + 1; dim < rankOf(input); ++dim) {
      input = n.sliceDim(input, dim, 0, shapeOf(indices)[dim]);
    }
    return n.gatherRows(input, rows, axis);
  }
  if (areInRows(indices, input, axis) && !constantIntsOf(indices)) {
    return n.gatherRows(input, indices, axis);
  }
  Value flat = asRows(n, input, rankOf(input));
  return n.gather(flat, elementPositions(n, indices, input, axis), 0);
}

LogicalResult importGatherElements(NodeImporter& n) {
  Value input = n.operand(0), indices = n.operand(1);
  if (!input || !indices) {
    return failure();
  }
  auto axis = n.normalizeAxis(n.attrInt("axis", 0), rankOf(input));
  if (failed(axis)) {
    return failure();
  }
  return n.replace(gatherElements(n, input, indices, *axis));
}

// indices[.., k] name rows of the input's first k dimensions, after `batch_dims` common ones.
LogicalResult importGatherND(NodeImporter& n) {
  Value input = n.operand(0), indices = n.operand(1);
  if (!input || !indices) {
    return failure();
  }
  const int64_t batch = n.attrInt("batch_dims", 0);
  const bool isAlongOne =
      batch > 0 && batch < rankOf(indices) && batch < rankOf(input) && shapeOf(indices).back() == 1;
  if (isAlongOne && !constantIntsOf(indices) &&
      shapeOf(indices).take_front(batch) == shapeOf(input).take_front(batch)) {
    Value rows = n.reshape(indices, Ints(shapeOf(indices).drop_back()));
    return n.replace(n.gatherRows(input, rows, batch));
  }
  RowPositions rows = rowPositions(n, indices, input, batch);
  return n.replace(n.gather(asRows(n, input, rows.depth), rows.positions, 0));
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
  auto axis = n.normalizeAxis(n.attrInt("axis", 0), rankOf(input));
  if (failed(axis)) {
    return failure();
  }
  if (!kLargest) {
    input = n.createLike<ir::NegOp>(input);
  }
  bool keepDims = n.attrInt("keepdims", 1) != 0;
  if (n.attrInt("select_last_index", 0) == 0) {
    return n.replace(n.create<ir::ArgmaxOp>(input, *axis, keepDims));
  }
  // The last one is the first from the end.
  int64_t last = shapeOf(input)[*axis] - 1;
  if (last >= kMaxEnumerated) {
    return n.error() << "looks at " << last + 1 << " elements, more than " << kMaxEnumerated;
  }
  Ints backwards = llvm::to_vector(llvm::reverse(llvm::seq<int64_t>(0, last + 1)));
  Value reversed = n.gather(input, n.constantOf(backwards), *axis);
  Value fromEnd = n.create<ir::ArgmaxOp>(reversed, *axis, keepDims);
  return n.replace(n.create<ir::SubOp>(n.constantOf({last}, llvm::ArrayRef<int64_t>()), fromEnd));
}

// Values and indices of the k largest or smallest, in order whether or not that is asked for.
LogicalResult importTopK(NodeImporter& n) {
  Value input = n.operand(0);
  auto k = n.constantInt(1);
  if (!input || failed(k)) {
    return failure();
  }
  auto axis = n.normalizeAxis(n.attrInt("axis", -1), rankOf(input));
  if (failed(axis)) {
    return failure();
  }
  Value indices = n.create<ir::TopkOp>(input, *k, *axis, n.attrInt("largest", 1) != 0);
  if (!indices) {
    return failure();
  }
  Value values = n.hasResult(0) ? gatherElements(n, input, indices, *axis) : Value();
  return n.replace({values, indices});
}

// values[1] where the index along a new axis is the one asked for, else values[0].
LogicalResult importOneHot(NodeImporter& n) {
  Value indices = n.operand(0), values = n.operand(2);
  std::optional<double> given = n.hasOperand(1) ? constantScalarOf(n.operand(1)) : std::nullopt;
  if (!indices || !values || !given) {
    return n.error() << "needs indices, values, and a depth that is known at compile time";
  }
  int64_t rank = rankOf(indices) + 1;
  auto axis = n.normalizeAxis(n.attrInt("axis", -1), rank);
  if (failed(axis)) {
    return failure();
  }
  if (rankOf(values) != 1 || shapeOf(values)[0] != 2 ||
      !(*given >= 1 && *given <= kMaxEnumerated)) {
    return n.error() << "has a depth of " << *given << " and values " << values.getType()
                     << ", expected a positive depth and two values";
  }
  auto depth = static_cast<int64_t>(*given);
  Ints column(shapeOf(indices)), shape(rank, 1);
  column.insert(column.begin() + *axis, 1);
  shape[*axis] = depth;
  Value index = n.reshape(wrapNegative(n, indices, depth), column);
  Value isHot = n.create<ir::EqualOp>(index, iotaLike(n, indices, shape, *axis));
  Value off = n.reshape(n.sliceDim(values, 0, 0, 1), {});
  Value on = n.reshape(n.sliceDim(values, 0, 1, 2), {});
  return n.replace(n.create<ir::SelectOp>(isHot, on, off));
}

}  // namespace

void registerIndexingOps(OpRegistry& registry) {
  registry.add("Slice", 13, importSlice);
  registry.add("Gather", 13, importGather);
  registry.add("GatherElements", 13, importGatherElements);
  registry.add("GatherND", 13, importGatherND);
  registry.add("Trilu", 14, importTrilu);
  registry.add("CumSum", 11, importCumSum);
  registry.add("TopK", 11, importTopK);
  registry.add("OneHot", 11, importOneHot);
  registry.addConstantOperands("OneHot", {1, 2});
  registry.add("ArgMax", 13, importArgExtreme<true>);
  registry.add("ArgMin", 13, importArgExtreme<false>);
}

}  // namespace oriel
