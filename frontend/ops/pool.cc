// Pooling: along one spatial dimension after the other, since sums and maxima over boxes are those
// over lines.
#include <limits>

#include "frontend/node_importer.h"
#include "frontend/op_registry.h"
#include "frontend/ops/ops.h"
#include "frontend/ops/windows.h"

namespace oriel {
namespace {

using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::Operation;
using mlir::ShapedType;
using mlir::Value;

using Sizes = llvm::ArrayRef<int64_t>;

// The input with `value` around it along `dim`, as far as the windows reach.
Value padded(NodeImporter& n, Value x, int64_t dim, const Window& window, double value) {
  int64_t high = std::max<int64_t>(0, window.span() - window.input - window.low);
  if (!x || (window.low == 0 && high == 0)) {
    return x;
  }
  Ints lows(rankOf(x), 0), highs(lows), interior(lows);
  lows[dim] = window.low;
  highs[dim] = high;
  return n.create<ir::PadOp>(x, Sizes(lows), Sizes(highs), Sizes(interior), value);
}

// If `x` is a maximum, its gradient goes to the first of equal elements.
Value toFirst(Value x) {
  Operation* op = x ? x.getDefiningOp() : nullptr;
  if (llvm::isa_and_nonnull<ir::MaxOp, ir::ReduceMaxOp>(op)) {
    op->setAttr(ir::kFirstOfEqualAttr, mlir::UnitAttr::get(op->getContext()));
  }
  return x;
}

// Every window's elements along `dim` made one, by ReduceOp or, two at a time, by CombineOp.
template <typename ReduceOp, typename CombineOp>
Value pooledAlong(NodeImporter& n, Value x, int64_t dim, const Window& window) {
  if (!x) {
    return {};
  }
  if (window.tiles()) {
    x = n.sliceDim(x, dim, 0, window.span());
    Ints tiles(shapeOf(x));
    tiles[dim] = window.output;
    tiles.insert(tiles.begin() + dim + 1, window.kernel);
    return toFirst(n.reduce<ReduceOp>(n.reshape(x, tiles), {dim + 1}, /*keepDims=*/false));
  }
  if (failed(checkOverlapping(n, window))) {
    return {};
  }
  Ints starts(rankOf(x), 0), limits(shapeOf(x)), strides(rankOf(x), 1);
  strides[dim] = window.stride;
  Value result;
  for (int64_t at = 0; at < window.kernel; ++at) {
    starts[dim] = at * window.dilation;
    limits[dim] = starts[dim] + (window.output - 1) * window.stride + 1;
    Value element = n.create<ir::SliceOp>(x, Sizes(starts), Sizes(limits), Sizes(strides));
    result = result ? toFirst(n.create<CombineOp>(result, element)) : element;
    if (!result) {
      return {};
    }
  }
  return result;
}

// The last dimension first: of equal elements the gradient goes to the first in row-major order.
Value maxPool(NodeImporter& n, Value x, llvm::ArrayRef<Window> windows) {
  for (int64_t dim = static_cast<int64_t>(windows.size()) + 1; dim >= 2; --dim) {
    const Window& window = windows[dim - 2];
    x = padded(n, x, dim, window, -std::numeric_limits<double>::infinity());
    x = pooledAlong<ir::ReduceMaxOp, ir::MaxOp>(n, x, dim, window);
  }
  return x;
}

Value sumPool(NodeImporter& n, Value x, llvm::ArrayRef<Window> windows) {
  for (auto [i, window] : llvm::enumerate(windows)) {
    int64_t dim = static_cast<int64_t>(i) + 2;
    x = pooledAlong<ir::ReduceSumOp, ir::AddOp>(n, padded(n, x, dim, window, 0), dim, window);
  }
  return x;
}

// How many elements of a window count along a dimension: those of the input, and with `pads`
// those of the padding that was asked for.
Ints countsAlong(const Window& window, bool pads) {
  Ints counts;
  int64_t begin = pads ? -window.low : 0, end = window.input + (pads ? window.high : 0);
  // Elements of a window that are less than `distance` after its first one.
  auto upTo = [&](int64_t distance) {
    int64_t count = distance <= 0 ? 0 : (distance - 1) / window.dilation + 1;
    return std::min(count, window.kernel);
  };
  for (int64_t at = 0; at < window.output; ++at) {
    int64_t first = at * window.stride - window.low;
    counts.push_back(std::max<int64_t>(1, upTo(end - first) - upTo(begin - first)));
  }
  return counts;
}

Value averagePool(NodeImporter& n, Value x, llvm::ArrayRef<Window> windows, bool countPads) {
  x = sumPool(n, x, windows);
  if (!x) {
    return {};
  }
  double whole = 1;
  for (auto [i, window] : llvm::enumerate(windows)) {
    if (window.output > kMaxEnumerated) {
      n.error() << "has " << window.output << " windows, more than " << kMaxEnumerated;
      return {};
    }
    Ints counts = countsAlong(window, countPads);
    if (llvm::all_equal(counts)) {
      whole *= static_cast<double>(counts.front());
      continue;
    }
    Ints column(rankOf(x) - 2 - i, 1);
    column[0] = window.output;
    Value divisor = n.cast(n.constantOf(counts, column), elementOf(x));
    x = n.create<ir::DivOp>(x, divisor);
  }
  return n.create<ir::MulOp>(x, n.scalarLike(x, 1 / whole));
}

FailureOr<llvm::SmallVector<Window>> readPool(NodeImporter& n) {
  Value input = n.operand(0);
  if (!input) {
    return failure();
  }
  auto windows =
      placedWindows(n, spatialSizesOf(input), n.attrInts("kernel_shape").value_or(Ints()));
  if (failed(windows)) {
    return failure();
  }
  for (const Window& window : *windows) {
    if (std::max(window.low, window.high) >= window.reach()) {
      return n.error() << "has pads " << window.low << " and " << window.high
                       << ", of which a window of " << window.reach() << " may see nothing else";
    }
  }
  return windows;
}

LogicalResult importAveragePool(NodeImporter& n) {
  auto windows = readPool(n);
  return failed(windows) ? failure()
                         : n.replace(averagePool(n, n.operand(0), *windows,
                                                 n.attrInt("count_include_pad", 0) != 0));
}

LogicalResult importMaxPool(NodeImporter& n) {
  auto windows = readPool(n);
  return failed(windows) ? failure() : n.replace(maxPool(n, n.operand(0), *windows));
}

// (Σ |x|^p)^(1/p)
Value powered(NodeImporter& n, Value x, double p) {
  if (p < 1) {
    n.error() << "has the norm " << p << ", expected 1 or more";
    return {};
  }
  if (p == 2) {
    return n.create<ir::MulOp>(x, x);
  }
  Value size = n.createLike<ir::AbsOp>(x);
  return p == 1 ? size : n.create<ir::PowOp>(size, n.scalarLike(x, p));
}
Value root(NodeImporter& n, Value x, double p) {
  if (p == 2) {
    return n.createLike<ir::SqrtOp>(x);
  }
  return p == 1 ? x : n.create<ir::PowOp>(x, n.scalarLike(x, 1 / p));
}

LogicalResult importLpPool(NodeImporter& n) {
  auto windows = readPool(n);
  auto p = static_cast<double>(n.attrInt("p", 2));
  return failed(windows) ? failure()
                         : n.replace(root(n, sumPool(n, powered(n, n.operand(0), p), *windows), p));
}

// Over all spatial dimensions.
template <typename ReduceOp>
Value reduceSpatial(NodeImporter& n, Value x) {
  if (x && rankOf(x) < 3) {
    n.error() << "pools " << x.getType();
    return {};
  }
  Ints dims;
  if (x) {
    dims = llvm::to_vector(llvm::seq<int64_t>(2, rankOf(x)));
  }
  return n.reduce<ReduceOp>(x, dims, /*keepDims=*/true);
}

template <typename ReduceOp>
LogicalResult importGlobalPool(NodeImporter& n) {
  return n.replace(reduceSpatial<ReduceOp>(n, n.operand(0)));
}

LogicalResult importGlobalMaxPool(NodeImporter& n) {
  Value x = n.operand(0);
  if (!x || rankOf(x) < 3) {
    return n.replace(reduceSpatial<ir::ReduceMaxOp>(n, x));
  }
  Ints kept(shapeOf(x).take_front(2)), rows(kept);
  rows.push_back(ShapedType::getNumElements(shapeOf(x).drop_front(2)));
  kept.resize(rankOf(x), 1);
  return n.replace(n.reshape(toFirst(reduceSpatial<ir::ReduceMaxOp>(n, n.reshape(x, rows))), kept));
}

LogicalResult importGlobalLpPool(NodeImporter& n) {
  auto p = static_cast<double>(n.attrInt("p", 2));
  return n.replace(root(n, reduceSpatial<ir::ReduceSumOp>(n, powered(n, n.operand(0), p)), p));
}

// x / (bias + alpha / size * Σ x²)^beta over `size` neighbouring channels: a sum pool along
// dimension 1.
LogicalResult importLrn(NodeImporter& n) {
  Value x = n.operand(0);
  int64_t size = n.attrInt("size", 1);
  if (!x || rankOf(x) < 2 || size < 1 || size > kMaxKernel) {
    return x ? n.error() << "normalises " << size << " channels of " << x.getType() : failure();
  }
  Window window;
  window.input = window.output = shapeOf(x)[1];
  window.kernel = size;
  window.low = (size - 1) / 2;
  window.high = size - 1 - window.low;
  Value sum = padded(n, n.create<ir::MulOp>(x, x), 1, window, 0);
  sum = pooledAlong<ir::ReduceSumOp, ir::AddOp>(n, sum, 1, window);
  double alpha = n.attrFloat("alpha", 1e-4f) / static_cast<double>(size);
  Value base = n.create<ir::AddOp>(n.create<ir::MulOp>(sum, n.scalarLike(x, alpha)),
                                   n.scalarLike(x, n.attrFloat("bias", 1)));
  Value norm = n.create<ir::PowOp>(base, n.scalarLike(x, n.attrFloat("beta", 0.75)));
  return n.replace(n.create<ir::DivOp>(x, norm));
}

}  // namespace

void registerPoolOps(OpRegistry& registry) {
  registry.add("AveragePool", 11, importAveragePool);
  registry.add("MaxPool", 12, importMaxPool);
  registry.add("LpPool", 11, importLpPool);
  registry.add("GlobalAveragePool", 1, importGlobalPool<ir::ReduceMeanOp>);
  registry.add("GlobalMaxPool", 1, importGlobalMaxPool);
  registry.add("GlobalLpPool", 2, importGlobalLpPool);
  registry.add("LRN", 13, importLrn);
}

}  // namespace oriel
