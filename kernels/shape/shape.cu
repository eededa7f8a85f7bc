// Copies between strided boxes, fill and iota, see shape.h. Elements are of 1, 2, 4, 8 or 16 bytes
// and copied as they are.
#include "kernels/cuda/elements.cuh"
#include "kernels/shape/shape_launch.h"

namespace oriel::kernels::cuda {
namespace {

// Adds the offsets of element `index` of the box.
template <typename I>
__device__ void Place(const CopyLaunch& box, I index, I* source, I* target) {
  for (int d = box.dims - 1; d >= 0; --d) {
    I at = index;
    index = box.sizes[d].Split(&at);
    *source += at * static_cast<I>(box.source[d]);
    *target += at * static_cast<I>(box.target[d]);
  }
}

// Elements are loaded several at a time, before any of them is stored.
template <typename I, typename T>
__device__ void Copy(const CopyLaunch& box, const T* source, T* target) {
  constexpr int kTurn = sizeof(T) < 8 ? 4 : 2;
  const I count = static_cast<I>(box.count), step = static_cast<I>(GlobalThreads());
  for (I i = static_cast<I>(GlobalThread()); i < count; i += kTurn * step) {
    T values[kTurn];
    I to[kTurn] = {};
#pragma unroll
    for (int j = 0; j < kTurn; ++j) {
      if (i + j * step >= count) continue;
      I from = 0;
      Place(box, i + j * step, &from, &to[j]);
      values[j] = source[from];
    }
#pragma unroll
    for (int j = 0; j < kTurn; ++j) {
      if (i + j * step < count) target[to[j]] = values[j];
    }
  }
}

// One square per block and turn: read along the source's rows, written along the target's.
template <typename I, typename T>
__device__ void Transpose(const CopyLaunch& box, const T* source, T* target) {
  constexpr int kTile = CopyTile(sizeof(T)), kStep = kCopyThreads / kTile, kTurns = kTile / kStep;
  constexpr int kGap = sizeof(T) < 4 ? 4 / sizeof(T) : 1;  // spreads columns over banks
  __shared__ T square[kTile][kTile + kGap];
  const int x = threadIdx.x % kTile, y = threadIdx.x / kTile;
  const I rows = static_cast<I>(box.rows), columns = static_cast<I>(box.columns);
  const I column_source = static_cast<I>(box.column_source);
  const I row_target = static_cast<I>(box.row_target);
  for (I i = blockIdx.x; i < static_cast<I>(box.count); i += gridDim.x) {
    I place = i, from = 0, to = 0;
    const I matrix = box.squares.Split(&place);
    const I row = box.across.Split(&place) * kTile, column = place * kTile;
    Place(box, matrix, &from, &to);
    from += row + x + (column + y) * column_source;
    to += (row + y) * row_target + column + x;
    T values[kTurns];
#pragma unroll
    for (int j = 0; j < kTurns; ++j) {
      if (row + x < rows && column + y + j * kStep < columns) {
        values[j] = source[from + j * kStep * column_source];
      }
    }
    __syncthreads();  // the last square has been read
#pragma unroll
    for (int j = 0; j < kTurns; ++j) square[y + j * kStep][x] = values[j];
    __syncthreads();
#pragma unroll
    for (int j = 0; j < kTurns; ++j) {
      if (row + y + j * kStep < rows && column + x < columns) {
        target[to + j * kStep * row_target] = square[x][y + j * kStep];
      }
    }
  }
}

template <typename T>
__device__ void Iota(T* target, int64_t count, int64_t size, int64_t inner) {
  for (int64_t i = GlobalThread(); i < count; i += GlobalThreads()) {
    target[i] = static_cast<T>(i / inner % size);
  }
}

}  // namespace

#define ORIEL_COPY(bytes, T)                                                           \
  ORIEL_CUDA_KERNEL(kCopyThreads, oriel_copy_##bytes, CopyLaunch box, const T* source, \
                    T* target) {                                                       \
    if (box.small) {                                                                   \
      Copy<int32_t>(box, source, target);                                              \
    } else {                                                                           \
      Copy<int64_t>(box, source, target);                                              \
    }                                                                                  \
  }
#define ORIEL_TRANSPOSE(bytes, T)                                                           \
  ORIEL_CUDA_KERNEL(kCopyThreads, oriel_transpose_##bytes, CopyLaunch box, const T* source, \
                    T* target) {                                                            \
    if (box.small) {                                                                        \
      Transpose<int32_t>(box, source, target);                                              \
    } else {                                                                                \
      Transpose<int64_t>(box, source, target);                                              \
    }                                                                                       \
  }
ORIEL_COPY(1, uint8_t)
ORIEL_COPY(2, uint16_t)
ORIEL_COPY(4, uint32_t)
ORIEL_COPY(8, uint64_t)
ORIEL_COPY(16, uint4)
ORIEL_TRANSPOSE(1, uint8_t)
ORIEL_TRANSPOSE(2, uint16_t)
ORIEL_TRANSPOSE(4, uint32_t)
ORIEL_TRANSPOSE(8, uint64_t)

#define ORIEL_IOTA(type, T)                                                                  \
  ORIEL_CUDA_KERNEL(kCopyThreads, oriel_iota_##type, T* target, int64_t count, int64_t size, \
                    int64_t inner) {                                                         \
    Iota(target, count, size, inner);                                                        \
  }
ORIEL_IOTA(i64, int64_t)
ORIEL_IOTA(i32, int32_t)
ORIEL_IOTA(f32, float)
ORIEL_IOTA(f64, double)

// `bits` hold an element again and again, up to 8 bytes; `target` is aligned to 16.
ORIEL_CUDA_KERNEL(kCopyThreads, oriel_fill, uint8_t* target, int64_t bytes, uint64_t bits) {
  const uint32_t low = static_cast<uint32_t>(bits), high = static_cast<uint32_t>(bits >> 32);
  uint4 pattern;
  pattern.x = pattern.z = low;
  pattern.y = pattern.w = high;
  const int64_t whole = bytes / 16;
  for (int64_t i = GlobalThread(); i < whole; i += GlobalThreads()) {
    reinterpret_cast<uint4*>(target)[i] = pattern;
  }
  for (int64_t i = whole * 16 + GlobalThread(); i < bytes; i += GlobalThreads()) {
    target[i] = static_cast<uint8_t>(bits >> (8 * (i % 8)));
  }
}

}  // namespace oriel::kernels::cuda
