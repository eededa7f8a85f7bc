// What launches of layer_norm.cu and layer_norm_grad.cu are given by value, and what they agree on;
// for host and device code.
#ifndef ORIEL_KERNELS_NORMALIZATION_NORM_ARGS_H_
#define ORIEL_KERNELS_NORMALIZATION_NORM_ARGS_H_

#include <cstdint>

namespace oriel::kernels::cuda {

template <typename T>
struct NormArgs {
  int64_t rows, n;
  T epsilon, offset;  // offset is added to the weight
};

// Threads of a block at most, and packs of a row that each holds: in a norm, and in a derivative,
// beside their columns' sums.
constexpr int kMaxNormThreads = 512, kNormPacks = 8, kGradPacks = 2;

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_NORMALIZATION_NORM_ARGS_H_
