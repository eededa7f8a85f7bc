// What the device code of conv/ is launched with.
#ifndef ORIEL_KERNELS_CONV_CONV_LAUNCH_H_
#define ORIEL_KERNELS_CONV_CONV_LAUNCH_H_

#include <cstdint>

#include "kernels/cuda/divisor.h"

namespace oriel::kernels::cuda {

inline constexpr int kConvThreads = 256;

// A ConvShape (conv.h), for so many of its samples.
struct ConvLaunch {
  int64_t samples, channels, group;
  int64_t positions, patch;  // of a group
  int64_t input[3], kernel[3], output[3];
  int64_t strides[3], lows[3], dilations[3];
};

// A ConvShape whose channels are each convolved with weights of their own. Indices within a channel
// are below kSmallIndices.
struct DepthwiseLaunch {
  int64_t samples, channels;
  int32_t inputs, outputs, taps;  // of a channel
  Divisor input[3], output[3], strides[3];
  int32_t kernel[3], lows[3], dilations[3];
};

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_CONV_CONV_LAUNCH_H_
