// Depthwise convolutions, see conv.h: a thread for each element of the output, or of the input's
// gradient, along x, and channels of all samples along y; for the weight's gradient a block for
// each channel, which takes the elements of the kernel one after the other.
//
// Sums of bf16 are taken in f32, the weight's gradient in f64. Loads are of neighbours, the second
// and further elements of the kernel from the cache: bytes over the memory are each operand once.
#include "kernels/conv/conv_launch.h"
#include "kernels/cuda/rows.cuh"

namespace oriel::kernels::cuda {
namespace {

// A position's places along three dimensions.
struct Place {
  int32_t at[3];
  __device__ Place(int32_t position, const Divisor (&sizes)[3]) {
    for (int d = 2; d > 0; --d) {
      const int32_t rest = sizes[d].Quotient(position);
      at[d] = position - rest * static_cast<int32_t>(sizes[d].size);
      position = rest;
    }
    at[0] = position;
  }
};

// The elements of the kernel: next() goes to the one after this.
struct Tap {
  int32_t at[3] = {0, 0, 0};
  __device__ void next(const int32_t (&kernel)[3]) {
    for (int d = 2; d >= 0; --d) {
      if (++at[d] < kernel[d] || d == 0) return;
      at[d] = 0;
    }
  }
};

// Where the element of the kernel meets the input at an output's place; -1: outside.
struct InputAt {
  __device__ int32_t operator()(const DepthwiseLaunch& s, const Place& out, const Tap& tap) const {
    int32_t place = 0;
    bool inside = true;
    for (int d = 0; d < 3; ++d) {
      const int32_t x = out.at[d] * s.strides[d] - s.lows[d] + tap.at[d] * s.dilations[d];
      inside = inside && x >= 0 && x < static_cast<int32_t>(s.input[d].size);
      place = place * static_cast<int32_t>(s.input[d].size) + x;
    }
    return inside ? place : -1;
  }
};

// The output's place that the element of the kernel meets this place of the input at; -1: none.
struct OutputAt {
  __device__ int32_t operator()(const DepthwiseLaunch& s, const Place& in, const Tap& tap) const {
    int32_t place = 0;
    bool inside = true;
    for (int d = 0; d < 3; ++d) {
      const int32_t start = in.at[d] + s.lows[d] - tap.at[d] * s.dilations[d];
      const int32_t x = s.strides[d] == 1 ? start : start / s.strides[d];
      inside = inside && start >= 0 && x * s.strides[d] == start &&
               x < static_cast<int32_t>(s.output[d].size);
      place = place * static_cast<int32_t>(s.output[d].size) + x;
    }
    return inside ? place : -1;
  }
};

// Each of `elements` of a channel, whose places are along `sizes`, is the sum over the kernel of
// what it meets among the channel's `sources`: meets(shape, place, tap) says where, or -1.
template <typename S, typename R, typename Meets>
__device__ void SumOverKernel(const DepthwiseLaunch& s, int32_t elements, const Divisor (&sizes)[3],
                              int32_t sources, const Meets& meets, const S* source, const S* weight,
                              const S* bias, R* result) {
  using T = Compute<S>;
  const int32_t first = static_cast<int32_t>(GlobalThread());
  for (int64_t row = blockIdx.y; row < s.samples * s.channels; row += gridDim.y) {
    const int64_t channel = row % s.channels;
    const S* const from = source + row * sources;
    const S* const w = weight + channel * s.taps;
    for (int32_t i = first; i < elements; i += static_cast<int32_t>(GlobalThreads())) {
      const Place place(i, sizes);
      T sum = bias != nullptr ? Widen(bias[channel]) : T(0);
      Tap tap;
      for (int32_t t = 0; t < s.taps; ++t, tap.next(s.kernel)) {
        const int32_t at = meets(s, place, tap);
        if (at >= 0) sum += Widen(w[t]) * Widen(from[at]);
      }
      result[row * elements + i] = Narrow<R>(sum);
    }
  }
}

template <typename S, typename R>
__device__ void WeightGrad(const DepthwiseLaunch& s, const S* cotangent, const S* input,
                           R* result) {
  for (int64_t channel = blockIdx.x; channel < s.channels; channel += gridDim.x) {
    Tap tap;
    for (int32_t t = 0; t < s.taps; ++t, tap.next(s.kernel)) {
      double sum = 0;
      for (int64_t sample = 0; sample < s.samples; ++sample) {
        const int64_t row = sample * s.channels + channel;
        const S* const dy = cotangent + row * s.outputs;
        const S* const x = input + row * s.inputs;
        for (int32_t i = static_cast<int32_t>(threadIdx.x); i < s.outputs;
             i += static_cast<int32_t>(blockDim.x)) {
          const int32_t at = InputAt()(s, Place(i, s.output), tap);
          if (at >= 0) sum += static_cast<double>(Widen(dy[i])) * Widen(x[at]);
        }
      }
      sum = GroupSum(sum);
      if (threadIdx.x == 0) {
        result[channel * s.taps + t] = Narrow<R>(static_cast<Compute<R>>(sum));
      }
    }
  }
}

}  // namespace

#define ORIEL_DEPTHWISE(type, S, R)                                                               \
  ORIEL_CUDA_KERNEL(kConvThreads, oriel_depthwise_##type, DepthwiseLaunch shape, const S* input,  \
                    const S* weight, const S* bias, R* result) {                                  \
    SumOverKernel(shape, shape.outputs, shape.output, shape.inputs, InputAt(), input, weight,     \
                  bias, result);                                                                  \
  }                                                                                               \
  ORIEL_CUDA_KERNEL(kConvThreads, oriel_depthwise_input_grad_##type, DepthwiseLaunch shape,       \
                    const S* cotangent, const S* weight, R* result) {                             \
    SumOverKernel(shape, shape.inputs, shape.input, shape.outputs, OutputAt(), cotangent, weight, \
                  static_cast<const S*>(nullptr), result);                                        \
  }                                                                                               \
  ORIEL_CUDA_KERNEL(kConvThreads, oriel_depthwise_weight_grad_##type, DepthwiseLaunch shape,      \
                    const S* cotangent, const S* input, R* result) {                              \
    WeightGrad(shape, cotangent, input, result);                                                  \
  }
ORIEL_DEPTHWISE(f32_f32, float, float)
ORIEL_DEPTHWISE(f64_f64, double, double)
ORIEL_DEPTHWISE(bf16_bf16, __nv_bfloat16, __nv_bfloat16)
ORIEL_DEPTHWISE(bf16_f32, __nv_bfloat16, float)

}  // namespace oriel::kernels::cuda
