// Elements of f32, f64 and bf16 in device code: what they are computed in, and several at a time.
#ifndef ORIEL_KERNELS_CUDA_ELEMENTS_CUH_
#define ORIEL_KERNELS_CUDA_ELEMENTS_CUH_

#include "kernels/cuda/device_code.cuh"

namespace oriel::kernels::cuda {

template <typename S>
struct ComputedIn {
  using Type = S;
};
template <>
struct ComputedIn<__nv_bfloat16> {
  using Type = float;
};
// What elements of S are computed in.
template <typename S>
using Compute = typename ComputedIn<S>::Type;

template <typename S>
__device__ inline Compute<S> Widen(S x) {
  return x;
}
template <>
__device__ inline float Widen(__nv_bfloat16 x) {
  return __bfloat162float(x);
}

// To nearest, ties to even.
template <typename S>
__device__ inline S Narrow(Compute<S> x) {
  return x;
}
template <>
__device__ inline __nv_bfloat16 Narrow<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}

// Elements that are loaded and stored by one instruction.
template <typename S, int kCount>
struct alignas(sizeof(S) * kCount) Pack {
  S at[kCount];
};

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_CUDA_ELEMENTS_CUH_
