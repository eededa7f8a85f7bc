// oriel_initial_<kind>_<type>, see initial_value.h. Each element makes its block's words by itself,
// so that any box can be made: the words of four elements cost less than the bytes of one.
#ifndef __CUDACC__
#pragma GCC optimize("fp-contract=off")  // of the emulator; see normal.h
#endif

#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/math.cuh"
#include "kernels/random/initial_value.h"
#include "kernels/random/normal.h"
#include "runtime/base/philox.h"
#include "runtime/base/remainder.h"

namespace oriel::kernels::cuda {
namespace {

// Of element i of the box, in the whole parameter.
__device__ uint64_t IndexOf(const InitialValueLaunch& launch, int64_t i) {
  int64_t index = launch.first_index;
  for (int d = launch.dims - 1; d >= 0; --d) {
    index += i % launch.sizes[d] * launch.strides[d];
    i /= launch.sizes[d];
  }
  return static_cast<uint64_t>(index);
}

__device__ runtime::PhiloxCounter WordsOf(const InitialValueLaunch& launch, uint64_t index) {
  const uint64_t block = index / 4;
  return runtime::Philox(
      {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
       static_cast<uint32_t>(launch.name), static_cast<uint32_t>(launch.name >> 32)},
      {static_cast<uint32_t>(launch.seed), static_cast<uint32_t>(launch.seed >> 32)});
}

// uint16_t are the bits of bf16 to which i16 is the remainder.
template <typename S>
__device__ S Stored(float value) {
  if constexpr (std::is_same_v<S, uint16_t>) {
    return runtime::RoundedAway(value);
  } else if constexpr (std::is_same_v<S, int16_t>) {
    return runtime::RemainderOf(value);
  } else {
    return Narrow<S>(value);
  }
}

template <typename S>
__device__ void MakeNormal(const InitialValueLaunch& launch, S* y) {
  for (int64_t i = GlobalThread(); i < launch.count; i += GlobalThreads()) {
    const uint64_t index = IndexOf(launch, i);
    const runtime::PhiloxCounter words = WordsOf(launch, index);
    const bool upper = (index & 2) != 0;
    float sine, cosine;
    SinCosOfTurn(upper ? words[3] : words[1], &sine, &cosine);
    const float radius = Sqrt(SquaredRadius(upper ? words[2] : words[0]));
    const float z = Product(radius, (index & 1) != 0 ? sine : cosine);
    y[i] = Stored<S>(launch.first + Product(launch.second, z));
  }
}

template <typename S>
__device__ void MakeUniform(const InitialValueLaunch& launch, S* y) {
  for (int64_t i = GlobalThread(); i < launch.count; i += GlobalThreads()) {
    const uint64_t index = IndexOf(launch, i);
    const runtime::PhiloxCounter words = WordsOf(launch, index);
    const uint32_t low = (index & 1) != 0 ? words[1] : words[0];
    const uint32_t high = (index & 1) != 0 ? words[3] : words[2];
    const float u = UniformOf((index & 2) != 0 ? high : low);
    const float value = launch.first + Product(launch.second - launch.first, u);
    y[i] = Stored<S>(value < launch.last ? value : launch.last);
  }
}

}  // namespace

#define ORIEL_INITIAL_VALUES(name, S)                                                           \
  ORIEL_CUDA_KERNEL(256, oriel_initial_normal_##name, const InitialValueLaunch launch, S* y) {  \
    MakeNormal(launch, y);                                                                      \
  }                                                                                             \
  ORIEL_CUDA_KERNEL(256, oriel_initial_uniform_##name, const InitialValueLaunch launch, S* y) { \
    MakeUniform(launch, y);                                                                     \
  }

ORIEL_INITIAL_VALUES(f32, float)
ORIEL_INITIAL_VALUES(bf16, __nv_bfloat16)
ORIEL_INITIAL_VALUES(away_bf16, uint16_t)
ORIEL_INITIAL_VALUES(away_i16, int16_t)

}  // namespace oriel::kernels::cuda
