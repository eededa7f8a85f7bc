// Patches of a convolution, see conv.h: [samples, groups, positions, patch], where a patch has the
// elements of the group's channels under the kernel.
#include "kernels/conv/conv_launch.h"
#include "kernels/cuda/elements.cuh"

namespace oriel::kernels::cuda {
namespace {

// Digits of `index` by `sizes`, the last one fastest.
__device__ void Split(int64_t index, const int64_t (&sizes)[3], int64_t* digits) {
  for (int d = 2; d >= 0; --d) {
    digits[d] = index % sizes[d];
    index /= sizes[d];
  }
}

// patches = what lies under the kernel, 0 outside the input.
template <typename S>
__device__ void Unfold(const ConvLaunch& s, const S* input, S* patches) {
  const int64_t taps = s.kernel[0] * s.kernel[1] * s.kernel[2];
  const int64_t channel_size = s.input[0] * s.input[1] * s.input[2];
  const int64_t count = s.samples * s.group * s.positions * s.patch;
  for (int64_t i = GlobalThread(); i < count; i += GlobalThreads()) {
    const int64_t element = i % s.patch, position = i / s.patch % s.positions;
    const int64_t group = i / s.patch / s.positions;  // of all samples
    int64_t out[3], tap[3];
    Split(position, s.output, out);
    Split(element % taps, s.kernel, tap);
    // The channels of groups and samples follow each other.
    int64_t from = group * (s.channels / s.group) + element / taps;
    bool inside = true;
    int64_t at = 0;
    for (int d = 0; d < 3; ++d) {
      const int64_t x = out[d] * s.strides[d] - s.lows[d] + tap[d] * s.dilations[d];
      inside = inside && x >= 0 && x < s.input[d];
      at = at * s.input[d] + x;
    }
    patches[i] = inside ? input[from * channel_size + at] : Narrow<S>(Compute<S>(0));
  }
}

// The elements of the kernel that meet a place of the input along a dimension, in order: calls
// visit(tap, place of the output).
template <typename Visit>
__device__ void ForEachMeeting(const ConvLaunch& s, int d, int64_t in, const Visit& visit) {
  const int64_t start = in + s.lows[d], stride = s.strides[d];
  // Without dilation they are a stride apart.
  const bool dense = s.dilations[d] == 1;
  for (int64_t tap = dense ? start % stride : 0; tap < s.kernel[d]; tap += dense ? stride : 1) {
    const int64_t rest = start - tap * s.dilations[d];
    if (rest < 0) return;
    const int64_t x = stride == 1 ? rest : rest / stride;
    if (x < s.output[d] && x * stride == rest) visit(tap, x);
  }
}

// The transpose: each element of the input's gradient is the sum of what it was in the patches, in
// the order of the kernel's elements.
template <typename T, typename R>
__device__ void Fold(const ConvLaunch& s, const T* patches, R* input) {
  const int64_t taps = s.kernel[0] * s.kernel[1] * s.kernel[2];
  const int64_t channel_size = s.input[0] * s.input[1] * s.input[2];
  const int64_t group_channels = s.channels / s.group;
  const int64_t count = s.samples * s.channels * channel_size;
  for (int64_t i = GlobalThread(); i < count; i += GlobalThreads()) {
    int64_t in[3];
    Split(i % channel_size, s.input, in);
    const int64_t channel = i / channel_size;  // of all samples
    const int64_t group = channel / group_channels;
    const T* from = patches + group * s.positions * s.patch + channel % group_channels * taps;
    T sum = T(0);
    ForEachMeeting(s, 0, in[0], [&](int64_t plane_tap, int64_t plane) {
      ForEachMeeting(s, 1, in[1], [&](int64_t row_tap, int64_t row) {
        ForEachMeeting(s, 2, in[2], [&](int64_t tap, int64_t x) {
          const int64_t position = (plane * s.output[1] + row) * s.output[2] + x;
          const int64_t element = (plane_tap * s.kernel[1] + row_tap) * s.kernel[2] + tap;
          sum += from[position * s.patch + element];
        });
      });
    });
    input[i] = Narrow<R>(sum);
  }
}

// result[channel, position] = sums[channel, position] + bias[channel]; in place, where T is R.
template <typename S, typename R>
__device__ void AddBias(int64_t count, int64_t positions, int64_t outputs, const Compute<S>* sums,
                        const S* bias, R* result) {
  for (int64_t i = GlobalThread(); i < count; i += GlobalThreads()) {
    result[i] = Narrow<R>(sums[i] + Widen(bias[i / positions % outputs]));
  }
}

}  // namespace

#define ORIEL_UNFOLD(type, S)                                                            \
  ORIEL_CUDA_KERNEL(kConvThreads, oriel_unfold_##type, ConvLaunch shape, const S* input, \
                    S* patches) {                                                        \
    Unfold(shape, input, patches);                                                       \
  }
ORIEL_UNFOLD(f32, float)
ORIEL_UNFOLD(f64, double)
ORIEL_UNFOLD(bf16, __nv_bfloat16)

#define ORIEL_FOLD(type, T, R)                                                           \
  ORIEL_CUDA_KERNEL(kConvThreads, oriel_fold_##type, ConvLaunch shape, const T* patches, \
                    R* input) {                                                          \
    Fold(shape, patches, input);                                                         \
  }
ORIEL_FOLD(f32, float, float)
ORIEL_FOLD(f64, double, double)
ORIEL_FOLD(bf16, float, __nv_bfloat16)

#define ORIEL_CONV_BIAS(type, S, R)                                                         \
  ORIEL_CUDA_KERNEL(kConvThreads, oriel_conv_bias_##type, int64_t count, int64_t positions, \
                    int64_t outputs, const Compute<S>* sums, const S* bias, R* result) {    \
    AddBias<S, R>(count, positions, outputs, sums, bias, result);                           \
  }
ORIEL_CONV_BIAS(f32_f32, float, float)
ORIEL_CONV_BIAS(f64_f64, double, double)
ORIEL_CONV_BIAS(bf16_bf16, __nv_bfloat16, __nv_bfloat16)
ORIEL_CONV_BIAS(bf16_f32, __nv_bfloat16, float)

}  // namespace oriel::kernels::cuda
