// Triangular systems, see solve.h: a block for each matrix and kSolveThreads right-hand sides, a
// thread for each of these.
//
// kRows rows at a time: what is known is subtracted first, in tiles of the matrix that the block
// shares, then the rows are solved in registers. Sums are in the element type, in the order of the
// rows. Bytes over the memory: each operand and the result once, where a matrix and its columns of
// the result stay in the cache.
#include "kernels/cuda/device_code.cuh"
#include "kernels/solve/solve_args.h"

namespace oriel::kernels::cuda {
namespace {

constexpr int kRows = 16;  // that are solved together
constexpr int kSpan = 64;  // known rows whose factors are shared at a time

// Of kRows rows from `i0` on: factors[j][r] is what row i0 + r has of row j0 + j, which is known
// or, where j0 is i0, one of these rows; 0 where that is not before it, and beyond the matrix.
template <typename T>
__device__ void Load(const TriangularSystems& s, const T* matrix, int64_t i0, int64_t j0, int span,
                     T (*factors)[kRows]) {
  __syncthreads();
  for (int k = static_cast<int>(threadIdx.x); k < span * kRows; k += kSolveThreads) {
    // Neighbours in memory are neighbouring columns, or with a transposed matrix rows.
    const bool along = s.column == 1 || s.column == -1;
    const int r = along ? k / span : k % kRows, j = along ? k % span : k / kRows;
    const int64_t row = i0 + r, column = j0 + j;
    const bool reads = row < s.n && (column < row || (column == row && !s.unit_diagonal));
    factors[j][r] = reads ? matrix[row * s.row + column * s.column] : T(0);
  }
  __syncthreads();
}

template <typename T>
__device__ void Solve(const TriangularSystems& s, const T* matrices, const T* rhs, T* result) {
  alignas(16) __shared__ T factors[kSpan][kRows];
  const int64_t tiles = (s.m + kSolveThreads - 1) / kSolveThreads;
  for (int64_t unit = blockIdx.x; unit < s.systems * tiles; unit += gridDim.x) {
    const int64_t system = unit / tiles, column = unit % tiles * kSolveThreads + threadIdx.x;
    const bool mine = column < s.m;
    const T* const matrix = matrices + system * s.n * s.n + s.first;
    const int64_t at = system * s.n * s.m + s.first_row + column;
    const T* const b = rhs + at;
    T* const x = result + at;
    for (int64_t i0 = 0; i0 < s.n; i0 += kRows) {
      T rows[kRows];
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        rows[r] = mine && i0 + r < s.n ? b[(i0 + r) * s.row_step] : T(0);
      }
      for (int64_t j0 = 0; j0 < i0; j0 += kSpan) {
        const int span = static_cast<int>(i0 - j0 < kSpan ? i0 - j0 : kSpan);
        Load(s, matrix, i0, j0, span, factors);
        for (int j = 0; mine && j < span; ++j) {
          const T known = x[(j0 + j) * s.row_step];
#pragma unroll
          for (int r = 0; r < kRows; ++r) rows[r] -= factors[j][r] * known;
        }
      }
      Load(s, matrix, i0, i0, kRows, factors);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        if (!s.unit_diagonal && i0 + r < s.n) rows[r] /= factors[r][r];
#pragma unroll
        for (int later = r + 1; later < kRows; ++later) {
          rows[later] -= factors[r][later] * rows[r];
        }
        if (mine && i0 + r < s.n) x[(i0 + r) * s.row_step] = rows[r];
      }
    }
  }
}

}  // namespace

ORIEL_CUDA_KERNEL(kSolveThreads, oriel_triangular_solve_f32, const TriangularSystems s,
                  const float* matrix, const float* rhs, float* result) {
  Solve(s, matrix, rhs, result);
}
ORIEL_CUDA_KERNEL(kSolveThreads, oriel_triangular_solve_f64, const TriangularSystems s,
                  const double* matrix, const double* rhs, double* result) {
  Solve(s, matrix, rhs, result);
}

}  // namespace oriel::kernels::cuda
