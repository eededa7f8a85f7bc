// What the device code of shape/ is launched with.
#ifndef ORIEL_KERNELS_SHAPE_SHAPE_LAUNCH_H_
#define ORIEL_KERNELS_SHAPE_SHAPE_LAUNCH_H_

#include <cstdint>

#include "kernels/cuda/divisor.h"

namespace oriel::kernels::cuda {

inline constexpr int kCopyThreads = 256;
// A transpose goes by squares of so many elements a side, through shared memory.
constexpr int CopyTile(int64_t bytes) { return bytes <= 2 ? 64 : 32; }

// A box that is copied, dimensions outermost first, in elements.
struct CopyLaunch {
  static constexpr int kDims = 16;
  int64_t count;  // elements, or squares
  bool small;     // count and offsets are below kSmallIndices
  int32_t dims;   // in a transpose without the last two, which are [columns] of the target and rows
  Divisor sizes[kDims];
  int64_t source[kDims];
  int64_t target[kDims];
  // Of a transpose: target[r * row_target + c] = source[r + c * column_source].
  int64_t rows, columns, row_target, column_source;
  Divisor across, squares;  // of one matrix: squares in a row of them, and of all
};

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_SHAPE_SHAPE_LAUNCH_H_
