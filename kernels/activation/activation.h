// Smooth activations, gated ones, and their derivatives (ir/oriel/activation.td).
//
// Dense buffers of one shape, f32, f64 and bf16, which is computed in f32, to 2^-16 at least, and
// rounded; results are assigned; f32 by vector_math.h. `activation`, `activation_grad` and
// `gated_activation` may overwrite an operand.
//
//   activation             x -> f(x)
//   activation_grad        dy, x -> dy f'(x)
//   gated_activation       gate, up -> f(gate) up
//   gated_activation_grad  dy, gate, up -> dy up f'(gate), dy f(gate)
//
// string kind: gelu, gelu_tanh, gelu_quick, silu
#ifndef ORIEL_KERNELS_ACTIVATION_ACTIVATION_H_
#define ORIEL_KERNELS_ACTIVATION_ACTIVATION_H_

#include "kernels/common/vector_math.h"

namespace oriel::kernels {

// Value and derivative, which share most of their work.
template <typename T>
struct ValueAndSlope {
  T value;
  T slope;
};

// x/2 (1 + erf(x/√2)); the slope is Φ(x) + x φ(x) of the normal distribution.
struct Gelu {
  template <typename T>
  static T Value(T x) {
    return T(0.5) * x * (T(1) + Erf(x * T(0.70710678118654752440)));
  }
  template <typename T>
  static ValueAndSlope<T> Both(T x) {
    const T cumulative = T(0.5) * (T(1) + Erf(x * T(0.70710678118654752440)));
    const T density = T(0.39894228040143267794) * Exp(T(-0.5) * x * x);
    return {x * cumulative, cumulative + x * density};
  }
};

// x/2 (1 + tanh(√(2/π) (x + 0.044715 x³)))
struct GeluTanh {
  template <typename T>
  static T Argument(T x) {
    return T(0.79788456080286535588) * (x + T(0.044715) * x * x * x);
  }
  template <typename T>
  static T Value(T x) {
    return T(0.5) * x * (T(1) + Tanh(Argument(x)));
  }
  template <typename T>
  static ValueAndSlope<T> Both(T x) {
    const T t = Tanh(Argument(x));
    const T inner = T(0.79788456080286535588) * (T(1) + T(0.134145) * x * x);
    return {T(0.5) * x * (T(1) + t), T(0.5) * (T(1) + t) + T(0.5) * x * (T(1) - t * t) * inner};
  }
};

// x sigmoid(1.702 x)
struct GeluQuick {
  template <typename T>
  static T Value(T x) {
    return x * Sigmoid(T(1.702) * x);
  }
  template <typename T>
  static ValueAndSlope<T> Both(T x) {
    const T s = Sigmoid(T(1.702) * x);
    return {x * s, s + T(1.702) * x * s * (T(1) - s)};
  }
};

// x sigmoid(x)
struct Silu {
  template <typename T>
  static T Value(T x) {
    return x * Sigmoid(x);
  }
  template <typename T>
  static ValueAndSlope<T> Both(T x) {
    const T s = Sigmoid(x);
    return {x * s, s + x * s * (T(1) - s)};
  }
};

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_ACTIVATION_ACTIVATION_H_
