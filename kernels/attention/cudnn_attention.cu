// What attention.h asks and cuDNN's attention does not do, or not in all versions: masks of truth
// values, rows that see nothing, whose output is 0 and whose logsumexp is -infinity, and sinks.
#include "kernels/attention/cudnn_attention_launch.h"
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/math.cuh"

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

// A row is of the threads along x, which take kWidth elements each at a time.
template <int kWidth, typename S, typename R>
__device__ void MakeBias(const BiasLaunch& b, const S* mask, R* bias) {
  const uint32_t heads = b.sizes[1], queries = b.sizes[2], rows = b.sizes[0] * heads * queries;
  for (uint32_t row = blockIdx.x * blockDim.y + threadIdx.y; row < rows;
       row += gridDim.x * blockDim.y) {
    const uint32_t head = row / queries, sample = head / heads;
    const S* from = mask + sample * b.strides[0] + (head - sample * heads) * b.strides[1] +
                    (row - head * queries) * b.strides[2];
    R* to = bias + row * b.sizes[3];
    for (int64_t key = threadIdx.x * kWidth; key < b.sizes[3]; key += blockDim.x * kWidth) {
      Pack<S, kWidth> pack;
      if constexpr (kWidth > 1) {
        pack = *reinterpret_cast<const Pack<S, kWidth>*>(from + key);
      } else {
        pack.at[0] = from[key * b.strides[3]];
      }
      Pack<R, kWidth> result;
#pragma unroll
      for (int i = 0; i < kWidth; ++i) result.at[i] = Narrow<R>(BiasOf(pack.at[i]));
      *reinterpret_cast<Pack<R, kWidth>*>(to + key) = result;
    }
  }
}

}  // namespace

#define ORIEL_BIAS(type, S, R)                                                         \
  ORIEL_CUDA_KERNEL(kCudnnAttentionThreads, oriel_attention_bias_##type, BiasLaunch b, \
                    const S* mask, R* bias) {                                          \
    if (b.packed) {                                                                    \
      MakeBias<kBiasBytes / sizeof(R), S, R>(b, mask, bias);                           \
    } else {                                                                           \
      MakeBias<1, S, R>(b, mask, bias);                                                \
    }                                                                                  \
  }
ORIEL_BIAS(bool, uint8_t, __nv_bfloat16)
ORIEL_BIAS(bf16, __nv_bfloat16, __nv_bfloat16)
ORIEL_BIAS(f32, float, float)

// Each lane reads one row's statistic; where it tells of a row that saw nothing, it is set, and the
// warp sets the row of the output.
ORIEL_CUDA_KERNEL(kCudnnAttentionThreads, oriel_attention_unseen, OutputLaunch o,
                  __nv_bfloat16* output, float* logsumexp) {
  const int lane = threadIdx.x % 32;
  for (int64_t first = GlobalThread() - lane; first < o.rows; first += GlobalThreads()) {
    const int64_t own = first + lane;
    const bool unseen = own < o.rows && logsumexp[own] < kUnseenStatistic;
    if (unseen) logsumexp[own] = -Infinity();
    unsigned left = __ballot_sync(kWholeWarp, unseen);
    for (; left != 0; left &= left - 1) {
      const int64_t row = first + __ffs(static_cast<int>(left)) - 1;
      const int64_t query = row % o.queries, head = row / o.queries;
      __nv_bfloat16* at = output + head / o.heads * o.sample_stride +
                          head % o.heads * o.head_stride + query * o.row_stride;
      for (int64_t i = lane; i < o.columns; i += 32) at[i] = Narrow<__nv_bfloat16>(0.0f);
    }
  }
}

// Gives the sink of each head its share: with m = log(exp(logsumexp) + exp(sink)), the output of a
// row, which is rounded once more, is multiplied by exp(logsumexp - m), and its logsumexp becomes
// m. A warp for each row.
ORIEL_CUDA_KERNEL(kCudnnAttentionThreads, oriel_attention_sink, OutputLaunch o, bool narrow_sink,
                  const void* sinks, __nv_bfloat16* output, float* logsumexp) {
  const int lane = threadIdx.x % 32;
  for (int64_t row = GlobalThread() / 32; row < o.rows; row += GlobalThreads() / 32) {
    const int64_t query = row % o.queries, head = row / o.queries;
    const float own = logsumexp[row];
    const float sink = narrow_sink ? Widen(static_cast<const __nv_bfloat16*>(sinks)[head % o.heads])
                                   : static_cast<const float*>(sinks)[head % o.heads];
    if (sink == -Infinity()) continue;
    const float highest = own > sink ? own : sink;
    const float share = Exp(own - highest), sum = share + Exp(sink - highest);
    __nv_bfloat16* at = output + head / o.heads * o.sample_stride + head % o.heads * o.head_stride +
                        query * o.row_stride;
    for (int64_t i = lane; i < o.columns; i += 32) {
      at[i] = Narrow<__nv_bfloat16>(Widen(at[i]) * (share / sum));
    }
    __syncwarp();  // all have read the logsumexp
    if (lane == 0) logsumexp[row] = highest + Log(sum);
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
