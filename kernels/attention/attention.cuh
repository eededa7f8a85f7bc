// What the device code of attention and of its gradient share: which keys a row sees, scores, and
// tiles in shared memory.
#ifndef ORIEL_KERNELS_ATTENTION_ATTENTION_CUH_
#define ORIEL_KERNELS_ATTENTION_ATTENTION_CUH_

#include "kernels/attention/attention_launch.h"
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/math.cuh"

namespace oriel::kernels::cuda {

template <typename T>
__device__ inline T Hidden() {
  return -static_cast<T>(__uint_as_float(0x7f800000u));
}

__device__ inline int64_t Clamp(int64_t x, int64_t low, int64_t high) {
  return x < low ? low : (x > high ? high : x);
}

// The keys [begin, end) that some of the rows [first, last] may see.
__device__ inline void VisibleKeys(const AttentionLaunch& a, int64_t first, int64_t last,
                                   int64_t* begin, int64_t* end) {
  const int64_t ahead = a.keys - a.queries;
  *end = a.causal ? Clamp(last + ahead + 1, 0, a.keys) : a.keys;
  *begin = a.window > 0 ? Clamp(first + ahead - a.window + 1, 0, *end) : 0;
}

// The rows [begin, end) that may see some of the keys [first, last].
__device__ inline void SeeingRows(const AttentionLaunch& a, int64_t first, int64_t last,
                                  int64_t* begin, int64_t* end) {
  const int64_t ahead = a.keys - a.queries;
  *begin = a.causal ? Clamp(first - ahead, 0, a.queries) : 0;
  *end = a.window > 0 ? Clamp(last - ahead + a.window, *begin, a.queries) : a.queries;
}

// The score of a row and a key, from their product; -infinity if it is hidden. `*slope`, if asked
// for, is the derivative of the cap. `mask` is at the row's first key.
template <typename T>
__device__ T Score(const AttentionLaunch& a, const void* mask, int64_t mask_row, int64_t row,
                   int64_t key, T product, T* slope = nullptr) {
  const int64_t last = row + a.keys - a.queries;
  if (row >= a.queries || key >= a.keys || (a.causal && key > last) ||
      (a.window > 0 && key <= last - a.window)) {
    return Hidden<T>();
  }
  T score = product * static_cast<T>(a.scale);
  if (a.softcap != 0) {
    const T capped = Tanh(product * static_cast<T>(a.scale / a.softcap));
    if (slope != nullptr) *slope = T(1) - capped * capped;
    score = capped * static_cast<T>(a.softcap);
  }
  const int64_t at = mask_row + key * a.mask_strides[3];
  switch (a.mask) {
    case AttentionLaunch::Mask::kBool:
      return static_cast<const uint8_t*>(mask)[at] != 0 ? score : Hidden<T>();
    case AttentionLaunch::Mask::kComputed:
      return score + static_cast<const T*>(mask)[at];
    case AttentionLaunch::Mask::kBFloat16:
      return score + static_cast<T>(Widen(static_cast<const __nv_bfloat16*>(mask)[at]));
    default:
      return score;
  }
}

__device__ inline int64_t MaskRow(const AttentionLaunch& a, int64_t sample, int64_t head,
                                  int64_t row) {
  return sample * a.mask_strides[0] + head * a.mask_strides[1] + row * a.mask_strides[2];
}

// The sink of a head; that of no sink is hidden.
template <typename T>
__device__ T SinkAt(const AttentionLaunch& a, const void* sink, int64_t head) {
  if (sink == nullptr) return Hidden<T>();
  if (a.narrow_sink) return static_cast<T>(Widen(static_cast<const __nv_bfloat16*>(sink)[head]));
  return static_cast<const T*>(sink)[head];
}

// Rows [first, first + kRows) of a matrix into tile[column][row], zeros from the row `end` on.
template <int kRows, typename S, typename T>
__device__ void LoadTransposed(const S* matrix, int64_t row_stride, int64_t first, int64_t end,
                               int columns, T* tile) {
  for (int i = threadIdx.x; i < kRows * columns; i += kAttentionThreads) {
    const int row = i / columns, column = i - row * columns;
    tile[column * PaddedTile(kRows) + row] =
        first + row < end ? static_cast<T>(Widen(matrix[(first + row) * row_stride + column]))
                          : T(0);
  }
}

// sums[i][j] = Σ_x left[x][row + i] right[x][column + j], of the thread's 4 rows and its columns.
template <int kColumns, typename T>
__device__ void TileProduct(const T* left, const T* right, int depth, int row, int column,
                            T (&sums)[4][kColumns / 16]) {
  constexpr int kEach = kColumns / 16;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < kEach; ++j) sums[i][j] = T(0);
  }
  for (int x = 0; x < depth; ++x) {
    T l[4], r[kEach];
#pragma unroll
    for (int i = 0; i < 4; ++i) l[i] = left[x * PaddedTile(kAttentionTile) + row + i];
#pragma unroll
    for (int j = 0; j < kEach; ++j) r[j] = right[x * PaddedTile(kColumns) + column + j];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int j = 0; j < kEach; ++j) sums[i][j] += l[i] * r[j];
    }
  }
}

// Of the 16 threads that share rows; each gets the result, by the same tree.
template <typename T>
__device__ T RowMaximum(T x) {
#pragma unroll
  for (int step = 8; step > 0; step /= 2) {
    const T other = __shfl_xor_sync(kWholeWarp, x, step);
    x = other > x ? other : x;
  }
  return x;
}
template <typename T>
__device__ T RowTotal(T x) {
#pragma unroll
  for (int step = 8; step > 0; step /= 2) x += __shfl_xor_sync(kWholeWarp, x, step);
  return x;
}

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_ATTENTION_ATTENTION_CUH_
