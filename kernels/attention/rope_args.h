// What launches of rope.cu are given by value; for host and device code.
#ifndef ORIEL_KERNELS_ATTENTION_ROPE_ARGS_H_
#define ORIEL_KERNELS_ATTENTION_ROPE_ARGS_H_

#include <cstdint>

namespace oriel::kernels::cuda {

// The rows of cos or sin: where that of row r of the input lies, and its columns.
struct RopeTable {
  static constexpr int kDims = 8;
  int64_t strides[kDims];  // in rows, of each of the input's outer dimensions
  int64_t columns;
  int64_t step, second;  // pair i at i * step and second + i * step
};

struct RopeArgs {
  int64_t rows, n, rotary_dim;
  int32_t dims;
  int32_t inverse;
  int64_t sizes[RopeTable::kDims];
  int64_t step, second;  // of pairs in the input
  RopeTable cos, sin;
};

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_ATTENTION_ROPE_ARGS_H_
