// What launches of rope.cu are given by value; for host and device code.
#ifndef ORIEL_KERNELS_ATTENTION_ROPE_ARGS_H_
#define ORIEL_KERNELS_ATTENTION_ROPE_ARGS_H_

#include <cstdint>

namespace oriel::kernels::cuda {

// The rows of cos or sin: where that of a position lies, and its columns.
struct RopeTable {
  static constexpr int kDims = 8;
  int64_t strides[kDims];  // in rows, of each of the positions' dimensions
  int64_t columns;
  int64_t step, second;  // pair i at i * step and second + i * step
};

// Rows of the input are those of positions and heads: of a dimension in which both tables repeat.
struct RopeArgs {
  int64_t positions, n, rotary_dim;
  int64_t heads, head_rows;  // and how many rows a head is from the next one
  int64_t heads_each;        // of a block
  int32_t dims;
  int32_t inverse;
  int64_t sizes[RopeTable::kDims], strides[RopeTable::kDims];  // of positions, in the input's rows
  int64_t step, second;                                        // of pairs in the input
  RopeTable cos, sin;
};

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_ATTENTION_ROPE_ARGS_H_
