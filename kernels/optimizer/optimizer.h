// Optimizer steps and the squared norm (ir/oriel/training.td).
//
//   sum_squares  any number of tensors of one float type (bf16 and f32 mixed) -> []; in double:
//   over
//                kSquaresBlock elements at a time, then block by block, operand by operand
//   sgd          p, gradient, gradient_scale [], learning_rate []; float weight_decay -> p'
//   adamw        p, gradient, m, v, gradient_scale [], learning_rate [], step [];
//                float beta1, beta2, epsilon, weight_decay -> p', m', v'
//
// Dense buffers of one shape, f32 and f64; scalars are of the parameter's type. The
// gradient of an f32 parameter (a bf16 one's master, say) may be bf16.
// Results are assigned and may be the buffers of p, m and v. Coefficients are
// computed in double once per launch, elements in the parameter's type.
#ifndef ORIEL_KERNELS_OPTIMIZER_OPTIMIZER_H_
#define ORIEL_KERNELS_OPTIMIZER_OPTIMIZER_H_

#include <cstdint>

namespace oriel::kernels {

inline constexpr int64_t kSquaresBlock = 16 * 1024;

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_OPTIMIZER_OPTIMIZER_H_
