// Depthwise convolutions, see conv.h: a thread for each element of the output, or of the input's
// gradient, along x, and channels of all samples along y; for the weight's gradient a block for
// each channel, which takes four elements of the kernel at a time.
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

// Calls visit(tap, place) for each element of the kernel, in order, that meets something:
// meets(dimension, tap) is its place along a dimension of `sizes`, or outside of them.
template <typename Meets, typename Visit>
__device__ void ForEachTap(const DepthwiseLaunch& s, const Divisor (&sizes)[3], const Meets& meets,
                           const Visit& visit) {
  const auto inside = [&](int32_t x, int d) { return static_cast<uint32_t>(x) < sizes[d].size; };
  int32_t tap = 0;
  for (int32_t i = 0; i < s.kernel[0]; ++i) {
    const int32_t plane = meets(0, i);
    for (int32_t j = 0; j < s.kernel[1]; ++j) {
      const int32_t row = meets(1, j);
      if (!inside(plane, 0) || !inside(row, 1)) {
        tap += s.kernel[2];
        continue;
      }
      const int32_t place =
          (plane * static_cast<int32_t>(sizes[1].size) + row) * static_cast<int32_t>(sizes[2].size);
#pragma unroll 2  // of more, ptxas spills
      for (int32_t k = 0; k < s.kernel[2]; ++k, ++tap) {
        const int32_t column = meets(2, k);
        if (inside(column, 2)) visit(tap, place + column);
      }
    }
  }
}

// The elements of the kernel that meet the input at an output's place.
struct TapsOfOutput {
  template <typename Visit>
  __device__ void operator()(const DepthwiseLaunch& s, const Place& out, const Visit& visit) const {
    const auto meets = [&](int d, int32_t tap) {
      return out.at[d] * static_cast<int32_t>(s.strides[d].size) - s.lows[d] + tap * s.dilations[d];
    };
    ForEachTap(s, s.input, meets, visit);
  }
};

// Those that meet the output at an input's place.
struct TapsOfInput {
  template <typename Visit>
  __device__ void operator()(const DepthwiseLaunch& s, const Place& in, const Visit& visit) const {
    const auto meets = [&](int d, int32_t tap) {
      int32_t from = in.at[d] + s.lows[d] - tap * s.dilations[d];
      if (s.strides[d].size == 1 || from < 0) return from;
      const int32_t x = s.strides[d].Split(&from);
      return from == 0 ? x : -1;
    };
    ForEachTap(s, s.output, meets, visit);
  }
};

// Each of `elements` of a channel, whose places are along `sizes`, is the sum over the kernel of
// what it meets among the channel's `sources`.
template <typename S, typename R, typename Taps>
__device__ void SumOverKernel(const DepthwiseLaunch& s, int32_t elements, const Divisor (&sizes)[3],
                              int32_t sources, const Taps& taps, const S* source, const S* weight,
                              const S* bias, R* result) {
  using T = Compute<S>;
  const int32_t first = static_cast<int32_t>(GlobalThread());
  for (int64_t row = blockIdx.y; row < s.samples * s.channels; row += gridDim.y) {
    const int64_t channel = row % s.channels;
    const S* const from = source + row * sources;
    const S* const w = weight + channel * s.taps;
    for (int32_t i = first; i < elements; i += static_cast<int32_t>(GlobalThreads())) {
      T sum = bias != nullptr ? Widen(bias[channel]) : T(0);
      taps(s, Place(i, sizes),
           [&](int32_t tap, int32_t at) { sum += Widen(w[tap]) * Widen(from[at]); });
      result[row * elements + i] = Narrow<R>(sum);
    }
  }
}

// Exact: of bf16 in f32 already.
template <typename S>
__device__ double Product(Compute<S> a, Compute<S> b) {
  return sizeof(S) == 2 ? static_cast<double>(a * b) : static_cast<double>(a) * b;
}

// Of some elements of the kernel at a time: an output's place is found once for them.
constexpr int kTapsAtOnce = 4;

template <typename S, typename R>
__device__ void WeightGrad(const DepthwiseLaunch& s, const S* cotangent, const S* input,
                           R* result) {
  int turn = 0;
  for (int64_t channel = blockIdx.x; channel < s.channels; channel += gridDim.x) {
    for (int32_t first = 0; first < s.taps; first += kTapsAtOnce) {
      int32_t offsets[kTapsAtOnce][3];  // of the input's place
      double sums[kTapsAtOnce] = {};
#pragma unroll
      for (int t = 0; t < kTapsAtOnce; ++t) {
        int32_t tap = min(first + t, s.taps - 1);
        for (int d = 2; d >= 0; --d) {
          const int32_t rest = d == 0 ? 0 : tap / s.kernel[d];
          offsets[t][d] = (tap - rest * s.kernel[d]) * s.dilations[d] - s.lows[d];
          tap = rest;
        }
      }
      for (int64_t sample = 0; sample < s.samples; ++sample) {
        const int64_t row = sample * s.channels + channel;
        const S* const dy = cotangent + row * s.outputs;
        const S* const x = input + row * s.inputs;
        for (int32_t i = static_cast<int32_t>(threadIdx.x); i < s.outputs;
             i += static_cast<int32_t>(blockDim.x)) {
          const Place out(i, s.output);
          const Compute<S> slope = Widen(dy[i]);
#pragma unroll
          for (int t = 0; t < kTapsAtOnce; ++t) {
            int32_t at = 0;
            bool inside = first + t < s.taps;
            for (int d = 0; d < 3; ++d) {
              const int32_t place =
                  out.at[d] * static_cast<int32_t>(s.strides[d].size) + offsets[t][d];
              inside = inside && static_cast<uint32_t>(place) < s.input[d].size;
              at = at * static_cast<int32_t>(s.input[d].size) + place;
            }
            if (inside) sums[t] += Product<S>(slope, Widen(x[at]));
          }
        }
      }
      GroupSums(sums, turn++);
      if (threadIdx.x != 0) continue;
#pragma unroll
      for (int t = 0; t < kTapsAtOnce; ++t) {
        if (first + t >= s.taps) break;
        result[channel * s.taps + first + t] = Narrow<R>(static_cast<Compute<R>>(sums[t]));
      }
    }
  }
}

}  // namespace

#define ORIEL_DEPTHWISE(type, S, R)                                                                \
  ORIEL_CUDA_KERNEL(kConvThreads, oriel_depthwise_##type, DepthwiseLaunch shape, const S* input,   \
                    const S* weight, const S* bias, R* result) {                                   \
    SumOverKernel(shape, shape.outputs, shape.output, shape.inputs, TapsOfOutput(), input, weight, \
                  bias, result);                                                                   \
  }                                                                                                \
  ORIEL_CUDA_KERNEL(kConvThreads, oriel_depthwise_input_grad_##type, DepthwiseLaunch shape,        \
                    const S* cotangent, const S* weight, R* result) {                              \
    SumOverKernel(shape, shape.inputs, shape.input, shape.outputs, TapsOfInput(), cotangent,       \
                  weight, static_cast<const S*>(nullptr), result);                                 \
  }                                                                                                \
  ORIEL_CUDA_KERNEL(kConvThreads, oriel_depthwise_weight_grad_##type, DepthwiseLaunch shape,       \
                    const S* cotangent, const S* input, R* result) {                               \
    WeightGrad(shape, cotangent, input, result);                                                   \
  }
ORIEL_DEPTHWISE(f32_f32, float, float)
ORIEL_DEPTHWISE(f64_f64, double, double)
ORIEL_DEPTHWISE(bf16_bf16, __nv_bfloat16, __nv_bfloat16)
ORIEL_DEPTHWISE(bf16_f32, __nv_bfloat16, float)

}  // namespace oriel::kernels::cuda
