// What the device code around cuDNN's attention is launched with.
#ifndef ORIEL_KERNELS_ATTENTION_CUDNN_ATTENTION_LAUNCH_H_
#define ORIEL_KERNELS_ATTENTION_CUDNN_ATTENTION_LAUNCH_H_

#include <cstdint>

namespace oriel::kernels::cuda {

inline constexpr int kCudnnAttentionThreads = 256;

// A bias that takes the place of a mask. cuDNN makes NaN of rows that are hidden altogether if the
// bias is infinite, so what is hidden becomes kHiddenBias, and what is finite but no score can make
// up for stays above it. Flash attention takes 2 to the power of x log2(e) - max log2(e), of which
// it rounds the second product alone: where x is the maximum the rest must stay far below 1, so
// numbers are no larger than they need be. Rows that are hidden by large finite numbers alone then
// have weights of scores that have lost digits, where others average.
inline constexpr float kHiddenBias = -1e6f;
inline constexpr float kLowestBias = -5e5f;
// The logarithm of the sum of a row that saw nothing but hidden keys is below this.
inline constexpr float kUnseenStatistic = -7e5f;
// Given to the gradient for such rows: all their probabilities become 0.
inline constexpr float kUnseenShift = 1e36f;

// Row-major [b, h, s, t] of a bias, with the strides of the mask, 0 where it is broadcast. Rows are
// counted in 32 bits.
struct BiasLaunch {
  int64_t sizes[4], strides[4];
  bool packed;  // rows begin at multiples of what makes kBiasBytes of the bias, in both
};
inline constexpr int kBiasBytes = 16;

// The rows of an output in [b, h, s]: where they lie.
struct OutputLaunch {
  int64_t rows, heads, queries, columns;
  int64_t sample_stride, head_stride, row_stride;
};

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_ATTENTION_CUDNN_ATTENTION_LAUNCH_H_
