// Products of tiles in shared memory by plain arithmetic, by blocks of 256 threads.
#ifndef ORIEL_KERNELS_LINEAR_TILE_PRODUCT_CUH_
#define ORIEL_KERNELS_LINEAR_TILE_PRODUCT_CUH_

#include "kernels/cuda/device_code.cuh"

namespace oriel::kernels::cuda {

// Of a tile of 64 rows and columns a thread has those of its own, and of every 16th from there on.
__device__ inline int TileRow() { return static_cast<int>(threadIdx.x) / 16; }
__device__ inline int TileColumn() { return static_cast<int>(threadIdx.x) % 16; }

// sums[i][j] += the sum over p, in ascending order, of left[p][row i] right[p][column j].
template <int kDepth, int kPitch, typename T>
__device__ inline void AddTileProduct(const T (&left)[kDepth][kPitch],
                                      const T (&right)[kDepth][kPitch], T (&sums)[4][4]) {
  const int tx = TileColumn(), ty = TileRow();
#pragma unroll
  for (int p = 0; p < kDepth; ++p) {
    T x[4], y[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) x[i] = left[p][ty + 16 * i];
#pragma unroll
    for (int j = 0; j < 4; ++j) y[j] = right[p][tx + 16 * j];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) sums[i][j] += x[i] * y[j];
    }
  }
}

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_LINEAR_TILE_PRODUCT_CUH_
