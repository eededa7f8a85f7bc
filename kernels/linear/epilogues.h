// Products with more behind them than a sum (ir/oriel/fused.td), of linear.h's operands and types.
//
//   linear_activation       input [b.., k], weight, bias [n]?
//                           -> activation of linear [b.., n], linear [b.., n]?
//   linear_activation_grad  cotangent [b.., k], weight, preactivation [b.., n]
//                           -> activation_grad of linear(cotangent, weight) [b.., n]
//   linear_grads            input [b.., k], cotangent [b.., n], addend?
//                           -> linear_weight_grad [k, n], sums of the cotangent over rows [n]
//   int transpose_weight; string kind, of activation/activation.h, for the first two
//
// By default launches of linear, activation, activation_grad, linear_weight_grad and reduce_sum,
// with their numbers. What does all at once need not round a product to bf16 before an activation
// or its derivative, and sums the cotangent in f32.
#ifndef ORIEL_KERNELS_LINEAR_EPILOGUES_H_
#define ORIEL_KERNELS_LINEAR_EPILOGUES_H_

#include <functional>

#include "absl/status/statusor.h"
#include "kernels/kernel.h"
#include "kernels/linear/gemm.h"

namespace oriel::kernels {

// A launch of another kernel on the same device.
using PrepareLaunch = std::function<absl::StatusOr<KernelFn>(const KernelSpec&)>;

absl::StatusOr<KernelFn> MakeLinearActivation(const KernelSpec& spec, const PrepareLaunch& prepare);
absl::StatusOr<KernelFn> MakeLinearActivationGrad(const KernelSpec& spec,
                                                  const PrepareLaunch& prepare);
absl::StatusOr<KernelFn> MakeLinearGrads(const KernelSpec& spec, const PrepareLaunch& prepare);

// The launch that each begins with. InvalidArgument where operands and results don't fit.
absl::StatusOr<KernelSpec> LinearOfActivation(const KernelSpec& spec);
absl::StatusOr<KernelSpec> LinearOfActivationGrad(const KernelSpec& spec);
absl::StatusOr<KernelSpec> WeightGradOfGrads(const KernelSpec& spec);

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_LINEAR_EPILOGUES_H_
