#include "frontend/ops/windows.h"

namespace oriel {

using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::success;
using mlir::Value;

namespace {

// Keeps every sum and product of a window's numbers far from overflow.
constexpr int64_t kLimit = int64_t{1} << 24;

int64_t divideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Fills in padding and output; there may be no window.
LogicalResult tryPlace(NodeImporter& n, const std::string& autoPad, bool ceil, Window& window) {
  if (autoPad == "SAME_UPPER" || autoPad == "SAME_LOWER") {
    // The size divided by the stride, rounded up; the odd element of padding at the end or start.
    window.output = divideUp(window.input, window.stride);
    int64_t total = std::max<int64_t>(0, window.span() - window.input);
    window.low = autoPad == "SAME_UPPER" ? total / 2 : total - total / 2;
    window.high = total - window.low;
    return success();
  }
  if (autoPad == "VALID") {
    window.low = window.high = 0;
  } else if (autoPad != "NOTSET") {
    return n.error() << "does not know auto_pad \"" << autoPad << "\"";
  }
  int64_t room = window.input + window.low + window.high - window.reach();
  if (room < 0) {
    return n.error() << "has a window of " << window.reach() << " over " << window.input
                     << " elements with pads " << window.low << " and " << window.high;
  }
  window.output = (ceil ? divideUp(room, window.stride) : room / window.stride) + 1;
  // No window starts in the padding at the end.
  if (ceil && (window.output - 1) * window.stride >= window.input + window.low) {
    --window.output;
  }
  return success();
}

LogicalResult place(NodeImporter& n, const std::string& autoPad, bool ceil, Window& window) {
  if (failed(tryPlace(n, autoPad, ceil, window))) {
    return failure();
  }
  return window.output > 0 ? success()
                           : n.error() << "has no window over " << window.input << " elements";
}

}  // namespace

FailureOr<llvm::SmallVector<Window>> readWindows(NodeImporter& n, llvm::ArrayRef<int64_t> sizes,
                                                 llvm::ArrayRef<int64_t> kernel) {
  size_t count = sizes.size();
  Ints strides = n.attrInts("strides").value_or(Ints(count, 1));
  Ints dilations = n.attrInts("dilations").value_or(Ints(count, 1));
  Ints pads = n.attrInts("pads").value_or(Ints(2 * count, 0));
  auto fits = [&](llvm::ArrayRef<int64_t> values) {
    return values.size() == count &&
           llvm::all_of(values, [](int64_t v) { return v > 0 && v < kLimit; });
  };
  if (count == 0 || !fits(kernel) || !fits(strides) || !fits(dilations) ||
      pads.size() != 2 * count ||
      llvm::any_of(pads, [](int64_t p) { return p < 0 || p > kLimit; })) {
    return n.error() << "needs one positive kernel size, stride and dilation and two pads, not "
                        "negative, per spatial dimension, of which there are "
                     << count;
  }
  llvm::SmallVector<Window> windows;
  for (size_t i = 0; i < count; ++i) {
    windows.push_back(
        {sizes[i], kernel[i], strides[i], dilations[i], pads[i], pads[i + count], /*output=*/1});
  }
  return windows;
}

FailureOr<llvm::SmallVector<Window>> placedWindows(NodeImporter& n, llvm::ArrayRef<int64_t> sizes,
                                                   llvm::ArrayRef<int64_t> kernel) {
  auto windows = readWindows(n, sizes, kernel);
  if (failed(windows)) {
    return failure();
  }
  std::string autoPad = n.attrString("auto_pad", "NOTSET");
  bool ceil = n.attrInt("ceil_mode", 0) != 0;
  for (Window& window : *windows) {
    if (failed(place(n, autoPad, ceil, window))) {
      return failure();
    }
  }
  return windows;
}

llvm::ArrayRef<int64_t> spatialSizesOf(Value input) {
  return rankOf(input) < 3 ? llvm::ArrayRef<int64_t>() : shapeOf(input).drop_front(2);
}

LogicalResult checkOverlapping(NodeImporter& n, const Window& window) {
  return window.kernel <= kMaxKernel ? success()
                                     : n.error() << "has overlapping windows of " << window.kernel
                                                 << " elements, more than " << kMaxKernel;
}

Ints each(llvm::ArrayRef<Window> windows, int64_t Window::*field) {
  Ints values;
  for (const Window& window : windows) {
    values.push_back(window.*field);
  }
  return values;
}

}  // namespace oriel
