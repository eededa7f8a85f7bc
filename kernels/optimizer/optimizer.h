// Optimizer steps and the squared norm (ir/oriel/training.td).
//
//   sum_squares  any number of tensors of one float type (bf16 and f32 mixed) -> []; in double:
//                kSquaresBlock elements at a time, then block by block, operand by operand
//   sgd          p.., gradient.., gradient_scale [], learning_rate []; float weight_decay -> p'..
//   sgd_momentum p.., gradient.., buffer.., gradient_scale [], learning_rate []; float momentum,
//                weight_decay; int nesterov -> p'.., buffer'..
//   adamw        p.., gradient.., m.., v.., gradient_scale [], learning_rate [], step [];
//                float beta1, beta2, epsilon, weight_decay -> p'.., m'.., v'..
//
// A step is that of one or more parameters: first all p, then all gradients, and so on. Behind the
// results may stand all p' once more, rounded to bf16 (to nearest, ties to even) for f32.
// Or all p are bf16, and behind the operands of their own stand all remainders, i16, behind the
// results all new ones: then p and p' are, in f32, what the two make together
// (runtime/base/remainder.h, where ties are rounded away from zero), and all else is as for f32.
// Dense buffers, of one shape for each parameter, f32 and f64, one type for all; scalars are of
// that type. The gradients of f32 parameters (bf16 ones' masters, say) may be bf16, all of them.
// Results are assigned and may be the buffers of p and of the states of the same parameter.
// Coefficients are computed in double once per launch, elements in the parameter's type: the bits
// are those of a launch for each parameter.
#ifndef ORIEL_KERNELS_OPTIMIZER_OPTIMIZER_H_
#define ORIEL_KERNELS_OPTIMIZER_OPTIMIZER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/kernel.h"

namespace oriel::kernels {

inline constexpr int64_t kSquaresBlock = 16 * 1024;

// The lists of a step.
struct StepShape {
  int count = 0;            // parameters
  DType dtype, gradient;    // that p is computed in, of gradients
  bool rounded = false;     // p' once more, in bf16
  bool remainders = false;  // p is bf16 and a remainder
  // InvalidArgument where operands and results are not those of a step with `own` operands for
  // each parameter (p, its gradient, its states) and `scalars` behind them.
  static absl::StatusOr<StepShape> Make(const KernelSpec& spec, int own, int scalars);
};

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_OPTIMIZER_OPTIMIZER_H_
