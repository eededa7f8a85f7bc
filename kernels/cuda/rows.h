// Grids for kernels of rows.cuh.
#ifndef ORIEL_KERNELS_CUDA_ROWS_H_
#define ORIEL_KERNELS_CUDA_ROWS_H_

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/device.h"

namespace oriel::kernels::cuda {

struct RowGrid {
  Grid blocks, threads;
};

// For `rows` rows of `n` elements of `bytes` each, of which a thread is to have about `packs` times
// 16 bytes.
inline RowGrid RowGridFor(const Device& device, int64_t rows, int64_t n, int64_t bytes,
                          int64_t packs = 2) {
  const int64_t each = std::max<int64_t>(1, 16 / bytes) * packs;
  const int64_t wanted = (n + each - 1) / each;
  const int64_t x = std::clamp<int64_t>((wanted + 31) / 32 * 32, 32, 512);
  const int64_t y = x == 32 ? std::clamp<int64_t>(rows, 1, 8) : 1;
  const int64_t multiprocessors = std::max(1, device.properties().multiprocessors);
  // As many as are there at a time, some times over, so that the last ones end together.
  const int64_t resident = multiprocessors * 4 * std::max<int64_t>(1, 2048 / (x * y));
  const int64_t blocks = std::clamp<int64_t>((rows + y - 1) / y, 1, resident);
  return {{static_cast<unsigned>(blocks)}, {static_cast<unsigned>(x), static_cast<unsigned>(y)}};
}

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_CUDA_ROWS_H_
