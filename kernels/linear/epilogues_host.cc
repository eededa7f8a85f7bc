// linear_activation, linear_activation_grad and linear_grads on the host; see epilogues.h.
#include "kernels/linear/epilogues.h"

namespace oriel::kernels {
namespace {

absl::StatusOr<KernelFn> Prepare(const KernelSpec& spec) {
  return KernelRegistry::Host().Prepare(spec);
}

absl::StatusOr<KernelFn> MakeActivation(const KernelSpec& spec) {
  return MakeLinearActivation(spec, Prepare);
}
absl::StatusOr<KernelFn> MakeActivationGrad(const KernelSpec& spec) {
  return MakeLinearActivationGrad(spec, Prepare);
}
absl::StatusOr<KernelFn> MakeGrads(const KernelSpec& spec) {
  return MakeLinearGrads(spec, Prepare);
}

ORIEL_REGISTER_HOST_KERNEL("linear_activation", 0, MakeActivation);
ORIEL_REGISTER_HOST_KERNEL("linear_activation_grad", 0, MakeActivationGrad);
ORIEL_REGISTER_HOST_KERNEL("linear_grads", 0, MakeGrads);

}  // namespace
}  // namespace oriel::kernels
