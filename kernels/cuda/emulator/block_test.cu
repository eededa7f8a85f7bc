// Device code that is right, and device code that a GPU would get wrong by chance; block_test.cc.
#include "kernels/cuda/device_code.cuh"

namespace oriel::kernels::cuda {

// Each block adds its elements, one per thread.
ORIEL_CUDA_KERNEL(64, oriel_test_block_sum, const int64_t* x, int64_t* y, int64_t count) {
  __shared__ int64_t part[2];
  const int64_t i = GlobalThread();
  int64_t sum = i < count ? x[i] : 0;
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(kWholeWarp, sum, lanes);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) y[blockIdx.x] = part[0] + part[1];
}

// Reverses a block in dynamic shared memory; without `barrier`, a race.
ORIEL_CUDA_KERNEL(64, oriel_test_reverse, const int32_t* x, int32_t* y, int32_t barrier) {
  ORIEL_DYNAMIC_SHARED(int32_t, held);
  held[threadIdx.x] = x[threadIdx.x];
  if (barrier != 0) __syncthreads();
  y[threadIdx.x] = held[blockDim.x - 1 - threadIdx.x];
}

// Writes where each thread of a three-dimensional grid finds itself.
ORIEL_CUDA_KERNEL(1024, oriel_test_indices, int32_t* y) {
  const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  y[block * threads + thread] = static_cast<int32_t>(block * threads + thread);
}

// y: what a lane hears from another in each way, 8 for each.
ORIEL_CUDA_KERNEL(32, oriel_test_lanes, int32_t* y) {
  const int lane = static_cast<int>(threadIdx.x);
  int32_t* own = y + lane * 8;
  own[0] = __shfl_sync(kWholeWarp, lane, 5);
  own[1] = __shfl_xor_sync(kWholeWarp, lane, 3);
  own[2] = __shfl_down_sync(kWholeWarp, lane, 2);
  own[3] = __shfl_up_sync(kWholeWarp, lane, 2);
  own[4] = __shfl_sync(kWholeWarp, lane, 1, 8);
  own[5] = __shfl_down_sync(kWholeWarp, lane, 4, 8);
  own[6] = static_cast<int32_t>(__ballot_sync(kWholeWarp, lane % 2));
  own[7] = __any_sync(kWholeWarp, lane == 31) * 2 + __all_sync(kWholeWarp, lane < 31);
}

// c = a b of a [16, 16], as it is or given transposed, and b [16, 8] likewise: on tensor cores.
ORIEL_CUDA_KERNEL(32, oriel_test_product, const __nv_bfloat16* a, const __nv_bfloat16* b, float* c,
                  int32_t transposed) {
  __shared__ __align__(16) __nv_bfloat16 left[16][16], right[16][16];
  const int lane = static_cast<int>(threadIdx.x);
  for (int i = lane; i < 256; i += 32) {
    left[i / 16][i % 16] = a[i];
    right[i / 16][i % 16] = b[i];
  }
  __syncthreads();
  uint32_t x[4], y[4];
  if (transposed == 0) {
    LoadMatrices(&left[lane % 16][lane / 16 * 8], x);
    LoadMatrices(&right[lane % 8 + lane / 16 * 8][lane / 8 % 2 * 8], y);
  } else {
    LoadMatricesTransposed(&left[lane % 8 + lane / 16 * 8][lane / 8 % 2 * 8], x);
    LoadMatricesTransposed(&right[lane % 16][lane / 16 * 8], y);
  }
  float sums[4] = {};
  MultiplyAdd(x, y, sums);
  for (int i = 0; i < 4; ++i) {
    c[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = sums[i];
  }
}

// 0: half of the block passes a barrier by; 1: a lane misses an exchange; 2: an exchange of half a
// warp; 3: lanes at different exchanges; 4: a trap; 5: beyond dynamic shared memory.
ORIEL_CUDA_KERNEL(64, oriel_test_wrong, int32_t how) {
  ORIEL_DYNAMIC_SHARED(int32_t, held);
  if (how == 0 && threadIdx.x < 32) __syncthreads();
  if (how == 1 && threadIdx.x != 7) __syncwarp();
  if (how == 2) __shfl_sync(0xffff, 1, 0);
  if (how == 3) {
    if (threadIdx.x == 3) {
      __syncwarp();
    } else {
      __shfl_sync(kWholeWarp, 1, 0);
    }
  }
  if (how == 4 && threadIdx.x == 9) __trap();
  if (how == 5) held[threadIdx.x] = 1;
}

// Counts all threads that are even, in a block.
ORIEL_CUDA_KERNEL(96, oriel_test_count, int32_t* y, Fault* fault) {
  const int even = __syncthreads_count(threadIdx.x % 2 == 0);
  if (threadIdx.x == 0) y[0] = even;
  atomicAdd(y + 1, 1);
  ReportFault(fault, 4, kIndexOutOfRange, -3, 10, 2);
}

}  // namespace oriel::kernels::cuda
