// Windows put back where they were cut (PyTorch's `Fold`): along one spatial dimension after the
// other, since a sum over boxes is one of sums along lines.
#include "frontend/node_importer.h"
#include "frontend/op_registry.h"
#include "frontend/ops/ops.h"
#include "frontend/ops/windows.h"

namespace oriel {
namespace {

using mlir::failure;
using mlir::LogicalResult;
using mlir::Value;

using Sizes = llvm::ArrayRef<int64_t>;

// x with its elements along `dim` at every `stride`th place of `size`, the first at `low`, and
// zeros between.
Value spread(NodeImporter& n, Value x, int64_t dim, int64_t low, int64_t stride, int64_t size) {
  if (!x) {
    return {};
  }
  Ints lows(rankOf(x), 0), highs(lows), interior(lows);
  lows[dim] = low;
  interior[dim] = stride - 1;
  highs[dim] = size - low - ((shapeOf(x)[dim] - 1) * stride + 1);
  return n.create<ir::PadOp>(x, Sizes(lows), Sizes(highs), Sizes(interior), 0.0);
}

// [.., kernel (at `kernelDim`), .., windows (at `windowDim`), ..] ->
// [.., .., input (at `windowDim` - 1), ..].
Value foldAlong(NodeImporter& n, Value x, int64_t kernelDim, int64_t windowDim,
                const Window& window) {
  if (!x) {
    return {};
  }
  int64_t padded = window.low + window.input + window.high, dim = windowDim - 1;
  Ints shape(shapeOf(x));
  shape.erase(shape.begin() + kernelDim);
  Value sum;
  if (window.tiles()) {
    auto order = llvm::to_vector(llvm::seq<int64_t>(0, rankOf(x)));
    order.erase(order.begin() + kernelDim);
    order.insert(order.begin() + windowDim, kernelDim);
    shape[dim] = window.span();
    sum = spread(n, n.reshape(n.transpose(x, order), shape), dim, 0, 1, padded);
  } else if (failed(checkOverlapping(n, window))) {
    return {};
  } else {
    for (int64_t at = 0; at < window.kernel; ++at) {
      Value element = n.reshape(n.sliceDim(x, kernelDim, at, at + 1), shape);
      element = spread(n, element, dim, at * window.dilation, window.stride, padded);
      sum = sum ? n.create<ir::AddOp>(sum, element) : element;
      if (!sum) {
        return {};
      }
    }
  }
  return n.sliceDim(sum, dim, window.low, window.low + window.input);
}

// [samples, channels * kernel, windows] -> [samples, channels, image ..].
LogicalResult importCol2Im(NodeImporter& n) {
  Value x = n.operand(0);
  auto image = n.constantInts(1), kernel = n.constantInts(2);
  if (!x || failed(image) || failed(kernel)) {
    return failure();
  }
  auto fits = [](int64_t size) { return size >= 0 && size < (int64_t{1} << 31); };
  if (rankOf(x) != 3 || image->empty() || !llvm::all_of(*image, fits)) {
    return n.error() << "puts " << x.getType() << " into an image of " << image->size()
                     << " dimensions";
  }
  auto windows = placedWindows(n, *image, *kernel);
  if (failed(windows)) {
    return failure();
  }
  int64_t rank = static_cast<int64_t>(windows->size()), elements = 1, count = 1;
  bool overflow = false;
  for (const Window& window : *windows) {
    overflow |= __builtin_mul_overflow(elements, window.kernel, &elements) ||
                __builtin_mul_overflow(count, window.output, &count);
  }
  if (overflow) {
    return n.error() << "has more windows, or elements of a window, than any tensor";
  }
  if (shapeOf(x)[1] % elements != 0 || shapeOf(x)[2] != count) {
    return n.error() << "has " << x.getType() << " for " << count << " windows of " << elements
                     << " elements";
  }
  Ints shape{shapeOf(x)[0], shapeOf(x)[1] / elements};
  llvm::append_range(shape, each(*windows, &Window::kernel));
  llvm::append_range(shape, each(*windows, &Window::output));
  x = n.reshape(x, shape);
  // The last one first: in front of it are as many kernels as dimensions of windows.
  for (int64_t i = rank - 1; i >= 0; --i) {
    x = foldAlong(n, x, /*kernelDim=*/2 + i, /*windowDim=*/3 + 2 * i, (*windows)[i]);
  }
  return n.replace(x);
}

}  // namespace

void registerFoldOps(OpRegistry& registry) { registry.add("Col2Im", 18, importCol2Im); }

}  // namespace oriel
