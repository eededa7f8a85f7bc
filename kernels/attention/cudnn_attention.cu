// What attention.h asks and cuDNN's attention does not do: masks of truth values, and rows that see
// nothing, whose output is 0 and whose logsumexp is -infinity.
#include "kernels/attention/cudnn_attention_launch.h"
#include "kernels/cuda/elements.cuh"

namespace oriel::kernels::cuda {
namespace {

__device__ inline float Infinity() { return __uint_as_float(0x7f800000u); }

// NaN stays NaN.
__device__ inline float Biased(float mask) {
  if (mask == -Infinity()) return kHiddenBias;
  return mask < kLowestBias ? kLowestBias : mask;
}
__device__ inline float BiasOf(uint8_t seen) { return seen != 0 ? 0.0f : kHiddenBias; }
__device__ inline float BiasOf(float mask) { return Biased(mask); }
__device__ inline float BiasOf(__nv_bfloat16 mask) { return Biased(Widen(mask)); }

template <typename S, typename R>
__device__ void MakeBias(const BiasLaunch& b, const S* mask, R* bias) {
  const int64_t count = b.sizes[0] * b.sizes[1] * b.sizes[2] * b.sizes[3];
  for (int64_t i = GlobalThread(); i < count; i += GlobalThreads()) {
    int64_t rest = i, from = 0;
    for (int d = 3; d >= 0; --d) {
      from += rest % b.sizes[d] * b.strides[d];
      rest /= b.sizes[d];
    }
    bias[i] = Narrow<R>(BiasOf(mask[from]));
  }
}

}  // namespace

#define ORIEL_BIAS(type, S, R)                                                         \
  ORIEL_CUDA_KERNEL(kCudnnAttentionThreads, oriel_attention_bias_##type, BiasLaunch b, \
                    const S* mask, R* bias) {                                          \
    MakeBias<S, R>(b, mask, bias);                                                     \
  }
ORIEL_BIAS(bool, uint8_t, __nv_bfloat16)
ORIEL_BIAS(bf16, __nv_bfloat16, __nv_bfloat16)
ORIEL_BIAS(f32, float, float)

// One thread for each element of the output, whose first one of a row sets the statistic, after all
// have read it: a block is one row.
ORIEL_CUDA_KERNEL(kCudnnAttentionThreads, oriel_attention_unseen, OutputLaunch o,
                  __nv_bfloat16* output, float* logsumexp) {
  for (int64_t row = blockIdx.x; row < o.rows; row += gridDim.x) {
    const bool unseen = logsumexp[row] < kUnseenStatistic;
    __syncthreads();
    if (!unseen) continue;
    const int64_t query = row % o.queries, head = row / o.queries;
    __nv_bfloat16* at = output + head / o.heads * o.sample_stride + head % o.heads * o.head_stride +
                        query * o.row_stride;
    for (int64_t i = threadIdx.x; i < o.columns; i += blockDim.x) {
      at[i] = Narrow<__nv_bfloat16>(0.0f);
    }
    if (threadIdx.x == 0) logsumexp[row] = -Infinity();
  }
}

// Statistics for the gradient.
ORIEL_CUDA_KERNEL(kCudnnAttentionThreads, oriel_attention_shifts, int64_t rows,
                  const float* logsumexp, float* shifts) {
  for (int64_t i = GlobalThread(); i < rows; i += GlobalThreads()) {
    shifts[i] = logsumexp[i] == -Infinity() ? kUnseenShift : logsumexp[i];
  }
}

}  // namespace oriel::kernels::cuda
