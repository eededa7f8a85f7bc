// Transpose of a matrix by tiles that fit into registers.
#ifndef ORIEL_KERNELS_COMMON_TRANSPOSE_H_
#define ORIEL_KERNELS_COMMON_TRANSPOSE_H_

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace oriel::kernels {

inline constexpr int64_t kTransposeTile = 16;

// target[i, j] = source[j, i] for i < rows, j < columns: the source is contiguous along i,
// the target along j; the other stride is given. Elements may be widened.
template <typename S, typename T>
inline void TransposeTiles(const S* source, int64_t source_j, T* target, int64_t target_i,
                           int64_t rows, int64_t columns) {
  for (int64_t i0 = 0; i0 < rows; i0 += kTransposeTile) {
    const int64_t i1 = std::min(i0 + kTransposeTile, rows);
    for (int64_t j0 = 0; j0 < columns; j0 += kTransposeTile) {
      const int64_t j1 = std::min(j0 + kTransposeTile, columns);
      if (i1 - i0 == kTransposeTile && j1 - j0 == kTransposeTile) {
        S tile[kTransposeTile][kTransposeTile];
        for (int64_t j = 0; j < kTransposeTile; ++j) {
          std::memcpy(tile[j], source + (j0 + j) * source_j + i0, sizeof(tile[j]));
        }
        for (int64_t i = 0; i < kTransposeTile; ++i) {
          T* to = target + (i0 + i) * target_i + j0;
#pragma omp simd
          for (int64_t j = 0; j < kTransposeTile; ++j) to[j] = tile[j][i];
        }
      } else {
        for (int64_t i = i0; i < i1; ++i) {
          for (int64_t j = j0; j < j1; ++j) target[i * target_i + j] = source[j * source_j + i];
        }
      }
    }
  }
}

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_COMMON_TRANSPOSE_H_
