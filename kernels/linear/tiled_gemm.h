// What tiled_gemm.cu is launched with: kernels oriel_gemm_<factors>_<result>.
#ifndef ORIEL_KERNELS_LINEAR_TILED_GEMM_H_
#define ORIEL_KERNELS_LINEAR_TILED_GEMM_H_

#include <cstdint>

namespace oriel::kernels::cuda {

// Rows and columns that a block computes, and its threads.
inline constexpr int kGemmTile = 64;
inline constexpr int kGemmThreads = 256;

struct TiledGemm {
  int64_t m, n, k;
  int64_t row_tiles, column_tiles;  // of c; a block for each and each matrix of the batch
  // Elements from a row to the next, from a column to the next, from a matrix to the next.
  int64_t a_row, a_column, a_step;
  int64_t b_row, b_column, b_step;
  enum class Bias : int32_t { kNone, kFactors, kComputed } bias;  // its type
  bool accumulate;
};

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_LINEAR_TILED_GEMM_H_
