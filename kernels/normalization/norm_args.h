// What launches of layer_norm.cu are given by value; for host and device code.
#ifndef ORIEL_KERNELS_NORMALIZATION_NORM_ARGS_H_
#define ORIEL_KERNELS_NORMALIZATION_NORM_ARGS_H_

#include <cstdint>

namespace oriel::kernels::cuda {

template <typename T>
struct NormArgs {
  int64_t rows, n;
  T epsilon, offset;  // offset is added to the weight
};

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_NORMALIZATION_NORM_ARGS_H_
