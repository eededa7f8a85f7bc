// The windows of convolution and pooling along each spatial dimension.
#ifndef ORIEL_FRONTEND_OPS_WINDOWS_H_
#define ORIEL_FRONTEND_OPS_WINDOWS_H_

#include "frontend/node_importer.h"

namespace oriel {

struct Window {
  int64_t input = 1, kernel = 1, stride = 1, dilation = 1;
  int64_t low = 0, high = 0;  // padding, as given
  int64_t output = 1;

  // From the first element of a window to its last, both counted.
  int64_t reach() const { return (kernel - 1) * dilation + 1; }
  // From the first window's first element to the last one's last.
  int64_t span() const { return (output - 1) * stride + reach(); }
};

// Reads strides, dilations and pads of a node that moves windows of size `kernel` over an input of
// rank 3 or more; what auto_pad and ceil_mode say, and `output`, is left open. Fails, with an
// error, for sizes that are not positive.
mlir::FailureOr<llvm::SmallVector<Window>> readWindows(NodeImporter& n, mlir::Value input,
                                                       llvm::ArrayRef<int64_t> kernel);
// The same, with padding and output decided. Fails for windows that don't fit.
mlir::FailureOr<llvm::SmallVector<Window>> placedWindows(NodeImporter& n, mlir::Value input,
                                                         llvm::ArrayRef<int64_t> kernel);

// One field of all windows.
Ints each(llvm::ArrayRef<Window> windows, int64_t Window::*field);

}  // namespace oriel

#endif  // ORIEL_FRONTEND_OPS_WINDOWS_H_
