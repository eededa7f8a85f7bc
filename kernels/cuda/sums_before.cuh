// Running sums over the threads of a block.
#ifndef ORIEL_KERNELS_CUDA_SUMS_BEFORE_CUH_
#define ORIEL_KERNELS_CUDA_SUMS_BEFORE_CUH_

#include "kernels/cuda/rows.cuh"

namespace oriel::kernels::cuda {

// The sum of x over the threads before this one of a block of so many, and over all of them. A
// barrier is to stand before the next call.
template <int kThreads, typename T>
__device__ inline T SumBefore(T x, T* all = nullptr) {
  constexpr int kWarps = kThreads / kWarpThreads;
  __shared__ T sums[kWarps];
  const int lane = static_cast<int>(threadIdx.x) % kWarpThreads;
  const int warp = static_cast<int>(threadIdx.x) / kWarpThreads;
  T sum = x;
  for (int lanes = 1; lanes < kWarpThreads; lanes *= 2) {
    const T other = __shfl_up_sync(kWholeWarp, sum, lanes);
    if (lane >= lanes) sum += other;
  }
  if (lane == kWarpThreads - 1) sums[warp] = sum;
  __syncthreads();
  for (int i = 0; i < warp; ++i) sum += sums[i];
  if (all != nullptr) {
    *all = 0;
    for (int i = 0; i < kWarps; ++i) *all += sums[i];
  }
  return sum - x;
}

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_CUDA_SUMS_BEFORE_CUH_
