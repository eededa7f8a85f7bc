// A matrix product for operands that fit the cache, on the calling thread.
//
//   c[i, j] = Σ_p a[i, p] b[p, j]      or, with kAccumulate, c[i, j] += ..
//
// `a` has any strides (so it may be transposed); the rows of `b` and `c` are
// contiguous. Each element is summed over p in ascending order in T, by the same
// instructions wherever it lies, so the result does not depend on how the
// caller cuts i and j.
#ifndef ORIEL_KERNELS_LINEAR_SMALL_GEMM_H_
#define ORIEL_KERNELS_LINEAR_SMALL_GEMM_H_

#include <cstdint>

#include "kernels/common/simd.h"

namespace oriel::kernels {

// One tile of kRows by kVectors registers; with kPart, the last vector holds `part` elements.
template <typename T, int kRows, int kVectors, bool kAccumulate, bool kPart>
inline void GemmTile(int64_t k, const T* a, int64_t a_row, int64_t a_column, const T* b,
                     int64_t b_row, T* c, int64_t c_row, int64_t part) {
  using S = Simd<T>;
  using Vector = typename S::Vector;
  const auto load = [part](const T* from, int v) {
    from += v * S::kLanes;
    return kPart && v == kVectors - 1 ? S::LoadPart(from, part) : S::Load(from);
  };
  Vector sum[kRows][kVectors];
  for (int i = 0; i < kRows; ++i) {
    for (int v = 0; v < kVectors; ++v) {
      if constexpr (kAccumulate) {
        sum[i][v] = load(c + i * c_row, v);
      } else {
        sum[i][v] = Vector{};
      }
    }
  }
  for (int64_t p = 0; p < k; ++p) {
    Vector right[kVectors];
    for (int v = 0; v < kVectors; ++v) right[v] = load(b + p * b_row, v);
    for (int i = 0; i < kRows; ++i) {
      const T left = a[i * a_row + p * a_column];
      for (int v = 0; v < kVectors; ++v) sum[i][v] += left * right[v];
    }
  }
  for (int i = 0; i < kRows; ++i) {
    for (int v = 0; v < kVectors; ++v) {
      T* to = c + i * c_row + v * S::kLanes;
      if (kPart && v == kVectors - 1) {
        S::StorePart(to, sum[i][v], part);
      } else {
        S::Store(to, sum[i][v]);
      }
    }
  }
}

// All rows of one column strip.
template <typename T, int kVectors, bool kAccumulate, bool kPart>
inline void GemmStrip(int64_t m, int64_t k, const T* a, int64_t a_row, int64_t a_column, const T* b,
                      int64_t b_row, T* c, int64_t c_row, int64_t part) {
  constexpr int kRows = kVectorRegisters >= 32 ? 8 : 4;
  int64_t i = 0;
  for (; i + kRows <= m; i += kRows) {
    GemmTile<T, kRows, kVectors, kAccumulate, kPart>(k, a + i * a_row, a_row, a_column, b, b_row,
                                                     c + i * c_row, c_row, part);
  }
  if (kRows > 4 && i + 4 <= m) {
    GemmTile<T, 4, kVectors, kAccumulate, kPart>(k, a + i * a_row, a_row, a_column, b, b_row,
                                                 c + i * c_row, c_row, part);
    i += 4;
  }
  for (; i < m; ++i) {
    GemmTile<T, 1, kVectors, kAccumulate, kPart>(k, a + i * a_row, a_row, a_column, b, b_row,
                                                 c + i * c_row, c_row, part);
  }
}

template <typename T, bool kAccumulate>
void SmallGemm(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_row, int64_t a_column,
               const T* b, int64_t b_row, T* c, int64_t c_row) {
  constexpr int64_t kLanes = Simd<T>::kLanes;
  int64_t j = 0;
  for (; j + 2 * kLanes <= n; j += 2 * kLanes) {
    GemmStrip<T, 2, kAccumulate, false>(m, k, a, a_row, a_column, b + j, b_row, c + j, c_row, 0);
  }
  if (j + kLanes <= n) {
    GemmStrip<T, 1, kAccumulate, false>(m, k, a, a_row, a_column, b + j, b_row, c + j, c_row, 0);
    j += kLanes;
  }
  if (j < n) {
    GemmStrip<T, 1, kAccumulate, true>(m, k, a, a_row, a_column, b + j, b_row, c + j, c_row, n - j);
  }
}

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_LINEAR_SMALL_GEMM_H_
