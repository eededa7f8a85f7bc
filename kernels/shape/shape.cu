// Copies between strided boxes, fill and iota, see shape.h. Elements are of 1, 2, 4, 8 or 16 bytes
// and copied as they are.
#include "kernels/cuda/elements.cuh"
#include "kernels/shape/shape_launch.h"

namespace oriel::kernels::cuda {
namespace {

// Adds the offsets of element `index` of the box.
__device__ void Place(const CopyLaunch& box, int64_t index, int64_t* source, int64_t* target) {
  for (int d = box.dims - 1; d >= 0; --d) {
    const int64_t next = index / box.sizes[d];
    const int64_t at = index - next * box.sizes[d];
    index = next;
    *source += at * box.source[d];
    *target += at * box.target[d];
  }
}

template <typename T>
__device__ void Copy(const CopyLaunch& box, const T* source, T* target) {
  for (int64_t i = GlobalThread(); i < box.count; i += GlobalThreads()) {
    int64_t from = 0, to = 0;
    Place(box, i, &from, &to);
    target[to] = source[from];
  }
}

// One square per block and turn: read along the source's rows, written along the target's.
template <typename T>
__device__ void Transpose(const CopyLaunch& box, const T* source, T* target) {
  __shared__ T square[kCopyTile][kCopyTile + 1];
  const int x = threadIdx.x % kCopyTile, y = threadIdx.x / kCopyTile;
  constexpr int kStep = kCopyThreads / kCopyTile;
  const int64_t across = (box.columns + kCopyTile - 1) / kCopyTile;
  const int64_t down = (box.rows + kCopyTile - 1) / kCopyTile;
  for (int64_t i = blockIdx.x; i < box.count; i += gridDim.x) {
    const int64_t matrix = i / (across * down), place = i % (across * down);
    const int64_t row = place / across * kCopyTile, column = place % across * kCopyTile;
    int64_t from = 0, to = 0;
    Place(box, matrix, &from, &to);
    for (int c = y; c < kCopyTile; c += kStep) {
      if (row + x < box.rows && column + c < box.columns) {
        square[c][x] = source[from + row + x + (column + c) * box.column_source];
      }
    }
    __syncthreads();
    for (int r = y; r < kCopyTile; r += kStep) {
      if (row + r < box.rows && column + x < box.columns) {
        target[to + (row + r) * box.row_target + column + x] = square[x][r];
      }
    }
    __syncthreads();
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
    Copy(box, source, target);                                                         \
  }
#define ORIEL_TRANSPOSE(bytes, T)                                                           \
  ORIEL_CUDA_KERNEL(kCopyThreads, oriel_transpose_##bytes, CopyLaunch box, const T* source, \
                    T* target) {                                                            \
    Transpose(box, source, target);                                                         \
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
