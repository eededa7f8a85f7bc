// What the device code of shape/ is launched with.
#ifndef ORIEL_KERNELS_SHAPE_SHAPE_LAUNCH_H_
#define ORIEL_KERNELS_SHAPE_SHAPE_LAUNCH_H_

#include <cstdint>

namespace oriel::kernels::cuda {

inline constexpr int kCopyThreads = 256;
// A transpose goes by squares of so many elements a side, through shared memory.
inline constexpr int kCopyTile = 32;

// A box that is copied, dimensions outermost first, in elements.
struct CopyLaunch {
  static constexpr int kDims = 16;
  int64_t count;  // elements, or squares
  int32_t dims;   // in a transpose without the last two, which are [columns] of the target and rows
  int64_t sizes[kDims];
  int64_t source[kDims];
  int64_t target[kDims];
  // Of a transpose: target[r * row_target + c] = source[r + c * column_source].
  int64_t rows, columns, row_target, column_source;
};

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_SHAPE_SHAPE_LAUNCH_H_
