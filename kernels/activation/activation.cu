// Activations, gated ones, and their derivatives, see activation.h: oriel_<kernel>_<type>. Computed
// in f32 or f64, rounded once. A result may be an operand.
#include "kernels/activation/activation_launch.h"
#include "kernels/cuda/math.cuh"
#include "kernels/elementwise/broadcast.cuh"

namespace oriel::kernels::cuda {
namespace {

template <typename T>
struct ValueAndSlope {
  T value;
  T slope;
};

// The formulas are those of activation.h.
template <typename T>
__device__ ValueAndSlope<T> Activate(ActivationKind kind, T x) {
  switch (kind) {
    case ActivationKind::kGelu: {
      const T cumulative = T(0.5) * (T(1) + Erf(x * T(0.70710678118654752440)));
      const T density = T(0.39894228040143267794) * Exp(T(-0.5) * x * x);
      return {x * cumulative, cumulative + x * density};
    }
    case ActivationKind::kGeluTanh: {
      const T t = Tanh(T(0.79788456080286535588) * (x + T(0.044715) * x * x * x));
      const T inner = T(0.79788456080286535588) * (T(1) + T(0.134145) * x * x);
      return {T(0.5) * x * (T(1) + t), T(0.5) * (T(1) + t) + T(0.5) * x * (T(1) - t * t) * inner};
    }
    case ActivationKind::kGeluQuick: {
      const T s = Sigmoid(T(1.702) * x);
      return {x * s, s + T(1.702) * x * s * (T(1) - s)};
    }
    default: {
      const T s = Sigmoid(x);
      return {x * s, s + x * s * (T(1) - s)};
    }
  }
}

template <typename S>
__device__ void Forward(ActivationKind kind, const S* x, S* y, int64_t count) {
  ForEachFlat<kVectorOf<sizeof(S)>>(count, [=](int64_t at, auto taken) {
    constexpr int kCount = decltype(taken)::value;
    Pack<S, kCount> pack = LoadPack<kCount>(x + at);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      pack.at[i] = Narrow<S>(Activate(kind, Widen(pack.at[i])).value);
    }
    StorePack(y + at, pack);
  });
}

template <typename S>
__device__ void Backward(ActivationKind kind, const S* dy, const S* x, S* dx, int64_t count) {
  ForEachFlat<kVectorOf<sizeof(S)>>(count, [=](int64_t at, auto taken) {
    constexpr int kCount = decltype(taken)::value;
    const Pack<S, kCount> cotangent = LoadPack<kCount>(dy + at);
    Pack<S, kCount> pack = LoadPack<kCount>(x + at);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      pack.at[i] = Narrow<S>(Widen(cotangent.at[i]) * Activate(kind, Widen(pack.at[i])).slope);
    }
    StorePack(dx + at, pack);
  });
}

template <typename S>
__device__ void GatedForward(ActivationKind kind, const S* gate, const S* up, S* y, int64_t count) {
  ForEachFlat<kVectorOf<sizeof(S)>>(count, [=](int64_t at, auto taken) {
    constexpr int kCount = decltype(taken)::value;
    const Pack<S, kCount> factor = LoadPack<kCount>(up + at);
    Pack<S, kCount> pack = LoadPack<kCount>(gate + at);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      pack.at[i] = Narrow<S>(Activate(kind, Widen(pack.at[i])).value * Widen(factor.at[i]));
    }
    StorePack(y + at, pack);
  });
}

template <typename S>
__device__ void GatedBackward(ActivationKind kind, const S* dy, const S* gate, const S* up,
                              S* gate_grad, S* up_grad, int64_t count) {
  ForEachFlat<kVectorOf<sizeof(S)>>(count, [=](int64_t at, auto taken) {
    constexpr int kCount = decltype(taken)::value;
    const Pack<S, kCount> cotangent = LoadPack<kCount>(dy + at);
    Pack<S, kCount> factor = LoadPack<kCount>(up + at);
    Pack<S, kCount> pack = LoadPack<kCount>(gate + at);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const auto f = Activate(kind, Widen(pack.at[i]));
      const auto d = Widen(cotangent.at[i]);
      pack.at[i] = Narrow<S>(d * Widen(factor.at[i]) * f.slope);
      factor.at[i] = Narrow<S>(d * f.value);
    }
    StorePack(gate_grad + at, pack);
    StorePack(up_grad + at, factor);
  });
}

}  // namespace

#define ORIEL_ACTIVATION(type, S)                                                                  \
  ORIEL_CUDA_KERNEL(kElementwiseThreads, oriel_activation_##type, ActivationKind kind, const S* x, \
                    S* y, int64_t count) {                                                         \
    Forward(kind, x, y, count);                                                                    \
  }                                                                                                \
  ORIEL_CUDA_KERNEL(kElementwiseThreads, oriel_activation_grad_##type, ActivationKind kind,        \
                    const S* dy, const S* x, S* dx, int64_t count) {                               \
    Backward(kind, dy, x, dx, count);                                                              \
  }                                                                                                \
  ORIEL_CUDA_KERNEL(kElementwiseThreads, oriel_gated_activation_##type, ActivationKind kind,       \
                    const S* gate, const S* up, S* y, int64_t count) {                             \
    GatedForward(kind, gate, up, y, count);                                                        \
  }                                                                                                \
  ORIEL_CUDA_KERNEL(kElementwiseThreads, oriel_gated_activation_grad_##type, ActivationKind kind,  \
                    const S* dy, const S* gate, const S* up, S* gate_grad, S* up_grad,             \
                    int64_t count) {                                                               \
    GatedBackward(kind, dy, gate, up, gate_grad, up_grad, count);                                  \
  }
ORIEL_ACTIVATION(f32, float)
ORIEL_ACTIVATION(f64, double)
ORIEL_ACTIVATION(bf16, __nv_bfloat16)

}  // namespace oriel::kernels::cuda
