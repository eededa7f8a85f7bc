// c = a b (+ bias) (+ addend): a plain product on tiles in shared memory.
//
// A block computes 64 rows and columns of c, a thread 4 by 4 of them, each summed over k in
// ascending order in the computing type (f32 for bf16), then the bias and the addend, which may
// be c, are added and the sum is rounded once. The order does not depend on the grid. Strides are
// in elements, so `a` and `b` may be stored transposed; those of a batch are `step` apart.
#include "kernels/cuda/elements.cuh"
#include "kernels/linear/tile_product.cuh"
#include "kernels/linear/tiled_gemm.h"

namespace oriel::kernels::cuda {
namespace {

constexpr int kTile = kGemmTile, kDepth = 16, kThreads = kGemmThreads;

// Rows [first, first + kTile) of a matrix, columns [begin, begin + kDepth), as tile[column][row];
// zeros outside. Neighbouring threads read along the contiguous dimension.
template <typename S>
__device__ void LoadTile(const S* matrix, int64_t rows, int64_t columns, int64_t row_step,
                         int64_t column_step, int64_t first, int64_t begin,
                         Compute<S> (*tile)[kTile + 1]) {
  const bool along_columns = column_step == 1;
  for (int i = threadIdx.x; i < kTile * kDepth; i += kThreads) {
    const int row = along_columns ? i / kDepth : i % kTile;
    const int column = along_columns ? i % kDepth : i / kTile;
    const bool inside = first + row < rows && begin + column < columns;
    tile[column][row] =
        inside ? Widen(matrix[(first + row) * row_step + (begin + column) * column_step])
               : Compute<S>(0);
  }
}

template <typename S, typename R>
__device__ void Multiply(const TiledGemm& g, const S* a, const S* b, const void* bias,
                         const R* addend, R* c) {
  using T = Compute<S>;
  __shared__ T left[kDepth][kTile + 1], right[kDepth][kTile + 1];
  const int64_t tiles = g.row_tiles * g.column_tiles;
  const int tx = TileColumn(), ty = TileRow();
  const int64_t matrix = blockIdx.x / tiles;
  const int64_t tile = blockIdx.x % tiles;
  const int64_t first_row = tile / g.column_tiles * kTile;
  const int64_t first_column = tile % g.column_tiles * kTile;
  a += matrix * g.a_step;
  b += matrix * g.b_step;
  addend += matrix * g.m * g.n;
  c += matrix * g.m * g.n;
  T sums[4][4] = {};
  for (int64_t begin = 0; begin < g.k; begin += kDepth) {
    LoadTile(a, g.m, g.k, g.a_row, g.a_column, first_row, begin, left);
    LoadTile(b, g.n, g.k, g.b_column, g.b_row, first_column, begin, right);
    __syncthreads();
    AddTileProduct(left, right, sums);
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int64_t row = first_row + ty + 16 * i;
    if (row >= g.m) continue;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int64_t column = first_column + tx + 16 * j;
      if (column >= g.n) continue;
      T sum = sums[i][j];
      if (g.bias == TiledGemm::Bias::kFactors) {
        sum += Widen(static_cast<const S*>(bias)[column]);
      } else if (g.bias == TiledGemm::Bias::kComputed) {
        sum += static_cast<const T*>(bias)[column];
      }
      const int64_t to = row * g.n + column;
      if (g.accumulate) sum += Widen(addend[to]);
      c[to] = Narrow<R>(sum);
    }
  }
}

}  // namespace

#define ORIEL_TILED_GEMM(name, S, R)                                                              \
  ORIEL_CUDA_KERNEL(kGemmThreads, name, TiledGemm gemm, const S* a, const S* b, const void* bias, \
                    const R* addend, R* c) {                                                      \
    Multiply(gemm, a, b, bias, addend, c);                                                        \
  }

ORIEL_TILED_GEMM(oriel_gemm_f32_f32, float, float)
ORIEL_TILED_GEMM(oriel_gemm_f64_f64, double, double)
ORIEL_TILED_GEMM(oriel_gemm_bf16_bf16, __nv_bfloat16, __nv_bfloat16)
ORIEL_TILED_GEMM(oriel_gemm_bf16_f32, __nv_bfloat16, float)

}  // namespace oriel::kernels::cuda
