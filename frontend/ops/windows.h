// The windows of convolution and pooling along each spatial dimension.
#ifndef ORIEL_FRONTEND_OPS_WINDOWS_H_
#define ORIEL_FRONTEND_OPS_WINDOWS_H_

#include "frontend/node_importer.h"

namespace oriel {

// Overlapping windows are computed element by element, each an op of its own.
inline constexpr int64_t kMaxKernel = 1024;

struct Window {
  int64_t input = 1, kernel = 1, stride = 1, dilation = 1;
  int64_t low = 0, high = 0;  // padding, as given
  int64_t output = 1;

  // Whether windows are side by side, without gaps.
  bool tiles() const { return dilation == 1 && stride == kernel; }
  // From the first element of a window to its last, both counted.
  int64_t reach() const { return (kernel - 1) * dilation + 1; }
  // From the first window's first element to the last one's last.
  int64_t span() const { return (output - 1) * stride + reach(); }
};

// Reads strides, dilations and pads of a node that moves windows of size `kernel` over the spatial
// dimensions `sizes`; what auto_pad and ceil_mode say, and `output`, is left open. Fails, with an
// error, for windows whose sizes are not positive.
mlir::FailureOr<llvm::SmallVector<Window>> readWindows(NodeImporter& n,
                                                       llvm::ArrayRef<int64_t> sizes,
                                                       llvm::ArrayRef<int64_t> kernel);
// The same, with padding and output decided. Fails for windows that don't fit.
mlir::FailureOr<llvm::SmallVector<Window>> placedWindows(NodeImporter& n,
                                                         llvm::ArrayRef<int64_t> sizes,
                                                         llvm::ArrayRef<int64_t> kernel);
// The sizes of all dimensions but samples and channels; none of an input of rank 2 or less.
llvm::ArrayRef<int64_t> spatialSizesOf(mlir::Value input);

// Fails, with an error, for one that has too many elements to be computed one by one.
mlir::LogicalResult checkOverlapping(NodeImporter& n, const Window& window);

// One field of all windows.
Ints each(llvm::ArrayRef<Window> windows, int64_t Window::*field);

}  // namespace oriel

#endif  // ORIEL_FRONTEND_OPS_WINDOWS_H_
