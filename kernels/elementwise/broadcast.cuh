// Loops of device code over elements: flat ones, and such of a BroadcastLaunch.
#ifndef ORIEL_KERNELS_ELEMENTWISE_BROADCAST_CUH_
#define ORIEL_KERNELS_ELEMENTWISE_BROADCAST_CUH_

#include "kernels/cuda/elements.cuh"
#include "kernels/elementwise/elementwise_launch.h"

namespace oriel::kernels::cuda {

// Elements that a thread takes at once, of which the largest has kBytes: 16 bytes.
template <int kBytes>
inline constexpr int kVectorOf = 16 / kBytes;

// Calls body(begin, count) for pieces of [0, count): `count` is a constant kVector, and `begin` a
// multiple of it, for all but the last few elements, which come one by one.
template <int kVector, typename Body>
__device__ void ForEachFlat(int64_t count, const Body& body) {
  const int64_t whole = count / kVector;
  for (int64_t i = GlobalThread(); i < whole; i += GlobalThreads()) {
    body(i * kVector, std::integral_constant<int, kVector>());
  }
  if constexpr (kVector > 1) {
    for (int64_t i = whole * kVector + GlobalThread(); i < count; i += GlobalThreads()) {
      body(i, std::integral_constant<int, 1>());
    }
  }
}

// Calls body(offsets of the operands, offset of the result, count) for pieces of rows.
template <int kVector, typename I, typename Body>
__device__ void ForEachInRows(const BroadcastLaunch& plan, const Body& body) {
  constexpr int kOperands = BroadcastLaunch::kOperands;
  const I count = static_cast<I>(plan.count), step = static_cast<I>(GlobalThreads());
  for (I i = static_cast<I>(GlobalThread()); i < count; i += step) {
    I place = i, offsets[kOperands] = {};
    if (plan.dims > 0) {
      I rest = plan.pieces.Split(&place);
      for (int d = plan.dims - 1; d >= 0; --d) {
        I index = rest;
        rest = plan.sizes[d].Split(&index);
        for (int k = 0; k < kOperands; ++k) {
          offsets[k] += index * static_cast<I>(plan.strides[d][k]);
        }
      }
    }
    for (int k = 0; k < kOperands; ++k) {
      if (plan.varies[k]) offsets[k] += place * kVector;
    }
    body(offsets, i * kVector, std::integral_constant<int, kVector>());
  }
}

template <int kVector, typename Body>
__device__ void ForEachBroadcast(const BroadcastLaunch& plan, const Body& body) {
  if (plan.vector == kVector) {
    plan.small ? ForEachInRows<kVector, int32_t>(plan, body)
               : ForEachInRows<kVector, int64_t>(plan, body);
  } else {
    plan.small ? ForEachInRows<1, int32_t>(plan, body) : ForEachInRows<1, int64_t>(plan, body);
  }
}

// kCount elements from `from` on, or one element so many times.
template <int kCount, typename S>
__device__ Pack<S, kCount> LoadPack(const S* from, bool varies = true) {
  if (varies) return *reinterpret_cast<const Pack<S, kCount>*>(from);
  Pack<S, kCount> pack;
#pragma unroll
  for (int i = 0; i < kCount; ++i) pack.at[i] = *from;
  return pack;
}

template <int kCount, typename S>
__device__ void StorePack(S* to, const Pack<S, kCount>& pack) {
  *reinterpret_cast<Pack<S, kCount>*>(to) = pack;
}

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_ELEMENTWISE_BROADCAST_CUH_
