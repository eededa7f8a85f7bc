// Activations, gated ones, and their derivatives, see activation.h: oriel_<kernel>_<type>. Computed
// in f32 or f64, rounded once. Of bf16, exponentials and quotients are the fast ones of f32, whose
// relative error of 2^-16 at most is far below that of rounding to bf16. A result may be an
// operand.
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

// Of what is stored as S.
template <typename S>
__device__ Compute<S> ExpOf(Compute<S> x) {
  if constexpr (std::is_same_v<S, __nv_bfloat16>) {
    return __expf(x);
  } else {
    return Exp(x);
  }
}
template <typename S>
__device__ Compute<S> SigmoidOf(Compute<S> x) {
  if constexpr (std::is_same_v<S, __nv_bfloat16>) {
    return __fdividef(1.0f, 1.0f + __expf(-x));
  } else {
    return Sigmoid(x);
  }
}

// The formulas are those of activation.h, but for gelu_tanh's: (1 + tanh(u)) / 2 = sigmoid(2 u).
template <ActivationKind kKind, typename S, typename T = Compute<S>>
__device__ ValueAndSlope<T> Activate(T x) {
  if constexpr (kKind == ActivationKind::kGelu) {
    const T cumulative = T(0.5) * (T(1) + Erf(x * T(0.70710678118654752440)));
    const T density = T(0.39894228040143267794) * ExpOf<S>(T(-0.5) * x * x);
    return {x * cumulative, cumulative + x * density};
  } else if constexpr (kKind == ActivationKind::kGeluTanh) {
    const T s = SigmoidOf<S>(T(1.59576912160573071176) * (x + T(0.044715) * x * x * x));
    const T inner = T(1.59576912160573071176) * (T(1) + T(0.134145) * x * x);
    return {x * s, s + x * s * (T(1) - s) * inner};
  } else if constexpr (kKind == ActivationKind::kGeluQuick) {
    const T s = SigmoidOf<S>(T(1.702) * x);
    return {x * s, s + T(1.702) * x * s * (T(1) - s)};
  } else {
    const T s = SigmoidOf<S>(x);
    return {x * s, s + x * s * (T(1) - s)};
  }
}

// Calls body with a function that activates, so that loops are compiled for each kind.
template <typename S, typename Body>
__device__ void WithKind(ActivationKind kind, const Body& body) {
  using T = Compute<S>;
  switch (kind) {
    case ActivationKind::kGelu:
      return body([](T x) { return Activate<ActivationKind::kGelu, S>(x); });
    case ActivationKind::kGeluTanh:
      return body([](T x) { return Activate<ActivationKind::kGeluTanh, S>(x); });
    case ActivationKind::kGeluQuick:
      return body([](T x) { return Activate<ActivationKind::kGeluQuick, S>(x); });
    default:
      return body([](T x) { return Activate<ActivationKind::kSilu, S>(x); });
  }
}

template <typename F, typename S>
__device__ void Forward(const F& f, const S* x, S* y, int64_t count) {
  ForEachFlat<kVectorOf<sizeof(S)>>(count, [=](int64_t at, auto taken) {
    constexpr int kCount = decltype(taken)::value;
    Pack<S, kCount> pack = LoadPack<kCount>(x + at);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      pack.at[i] = Narrow<S>(f(Widen(pack.at[i])).value);
    }
    StorePack(y + at, pack);
  });
}

template <typename F, typename S>
__device__ void Backward(const F& f, const S* dy, const S* x, S* dx, int64_t count) {
  ForEachFlat<kVectorOf<sizeof(S)>>(count, [=](int64_t at, auto taken) {
    constexpr int kCount = decltype(taken)::value;
    const Pack<S, kCount> cotangent = LoadPack<kCount>(dy + at);
    Pack<S, kCount> pack = LoadPack<kCount>(x + at);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      pack.at[i] = Narrow<S>(Widen(cotangent.at[i]) * f(Widen(pack.at[i])).slope);
    }
    StorePack(dx + at, pack);
  });
}

template <typename F, typename S>
__device__ void GatedForward(const F& f, const S* gate, const S* up, S* y, int64_t count) {
  ForEachFlat<kVectorOf<sizeof(S)>>(count, [=](int64_t at, auto taken) {
    constexpr int kCount = decltype(taken)::value;
    const Pack<S, kCount> factor = LoadPack<kCount>(up + at);
    Pack<S, kCount> pack = LoadPack<kCount>(gate + at);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      pack.at[i] = Narrow<S>(f(Widen(pack.at[i])).value * Widen(factor.at[i]));
    }
    StorePack(y + at, pack);
  });
}

template <typename F, typename S>
__device__ void GatedBackward(const F& f, const S* dy, const S* gate, const S* up, S* gate_grad,
                              S* up_grad, int64_t count) {
  ForEachFlat<kVectorOf<sizeof(S)>>(count, [=](int64_t at, auto taken) {
    constexpr int kCount = decltype(taken)::value;
    const Pack<S, kCount> cotangent = LoadPack<kCount>(dy + at);
    Pack<S, kCount> factor = LoadPack<kCount>(up + at);
    Pack<S, kCount> pack = LoadPack<kCount>(gate + at);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const auto activated = f(Widen(pack.at[i]));
      const auto d = Widen(cotangent.at[i]);
      pack.at[i] = Narrow<S>(d * Widen(factor.at[i]) * activated.slope);
      factor.at[i] = Narrow<S>(d * activated.value);
    }
    StorePack(gate_grad + at, pack);
    StorePack(up_grad + at, factor);
  });
}

}  // namespace

#define ORIEL_ACTIVATION(type, S)                                                                  \
  ORIEL_CUDA_KERNEL(kElementwiseThreads, oriel_activation_##type, ActivationKind kind, const S* x, \
                    S* y, int64_t count) {                                                         \
    WithKind<S>(kind, [&](auto f) { Forward(f, x, y, count); });                                   \
  }                                                                                                \
  ORIEL_CUDA_KERNEL(kElementwiseThreads, oriel_activation_grad_##type, ActivationKind kind,        \
                    const S* dy, const S* x, S* dx, int64_t count) {                               \
    WithKind<S>(kind, [&](auto f) { Backward(f, dy, x, dx, count); });                             \
  }                                                                                                \
  ORIEL_CUDA_KERNEL(kElementwiseThreads, oriel_gated_activation_##type, ActivationKind kind,       \
                    const S* gate, const S* up, S* y, int64_t count) {                             \
    WithKind<S>(kind, [&](auto f) { GatedForward(f, gate, up, y, count); });                       \
  }                                                                                                \
  ORIEL_CUDA_KERNEL(kElementwiseThreads, oriel_gated_activation_grad_##type, ActivationKind kind,  \
                    const S* dy, const S* gate, const S* up, S* gate_grad, S* up_grad,             \
                    int64_t count) {                                                               \
    WithKind<S>(kind, [&](auto f) { GatedBackward(f, dy, gate, up, gate_grad, up_grad, count); }); \
  }
ORIEL_ACTIVATION(f32, float)
ORIEL_ACTIVATION(f64, double)
ORIEL_ACTIVATION(bf16, __nv_bfloat16)

}  // namespace oriel::kernels::cuda
