// result = condition ? on_true : on_false with broadcast, see elementwise.h: oriel_select_<bytes>.
#include "kernels/elementwise/broadcast.cuh"

namespace oriel::kernels::cuda {
namespace {

template <typename T>
__device__ void Select(const BroadcastLaunch& plan, const uint8_t* condition, const T* on_true,
                       const T* on_false, T* y) {
  ForEachBroadcast<kVectorOf<sizeof(T)>>(plan, [&](const auto* offsets, auto at, auto taken) {
    constexpr int kCount = decltype(taken)::value;
    const auto chosen = LoadPack<kCount>(condition + offsets[0], plan.varies[0]);
    const auto a = LoadPack<kCount>(on_true + offsets[1], plan.varies[1]);
    const auto b = LoadPack<kCount>(on_false + offsets[2], plan.varies[2]);
    Pack<T, kCount> result;
#pragma unroll
    for (int i = 0; i < kCount; ++i) result.at[i] = chosen.at[i] ? a.at[i] : b.at[i];
    StorePack(y + at, result);
  });
}

}  // namespace

#define ORIEL_SELECT(bytes, T)                                                             \
  ORIEL_CUDA_KERNEL(kElementwiseThreads, oriel_select_##bytes, BroadcastLaunch plan,       \
                    const uint8_t* condition, const T* on_true, const T* on_false, T* y) { \
    Select(plan, condition, on_true, on_false, y);                                         \
  }
ORIEL_SELECT(1, uint8_t)
ORIEL_SELECT(2, uint16_t)
ORIEL_SELECT(4, uint32_t)
ORIEL_SELECT(8, uint64_t)

}  // namespace oriel::kernels::cuda
