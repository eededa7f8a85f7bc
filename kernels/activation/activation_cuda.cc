// Activations on a device; see activation.h.
#include "kernels/activation/activation_launch.h"
#include "kernels/cuda/factory.h"
#include "kernels/cuda/registry.h"

namespace oriel::kernels::cuda {
namespace {

constexpr unsigned kThreads = 256;

absl::StatusOr<ActivationKind> KindOf(const KernelSpec& spec) {
  ORIEL_ASSIGN_OR_RETURN(const std::string kind, spec.String("kind"));
  if (kind == "gelu") return ActivationKind::kGelu;
  if (kind == "gelu_tanh") return ActivationKind::kGeluTanh;
  if (kind == "gelu_quick") return ActivationKind::kGeluQuick;
  if (kind == "silu") return ActivationKind::kSilu;
  return Malformed(spec, "unknown kind '" + kind + "'");
}

// Operands and results, which agree in type and shape, are the function's arguments in order.
template <size_t kOperands, size_t kResults>
absl::StatusOr<KernelFn> MakeKind(const KernelSpec& spec, Device& device) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, kOperands, kResults));
  const TensorSpec& first = spec.operands[0];
  for (size_t i = 1; i < kOperands; ++i) {
    ORIEL_RETURN_IF_ERROR(CheckOperand(spec, i, first.dtype, first.shape));
  }
  for (size_t i = 0; i < kResults; ++i) {
    ORIEL_RETURN_IF_ERROR(CheckResult(spec, i, first.dtype, first.shape));
  }
  ORIEL_ASSIGN_OR_RETURN(const ActivationKind kind, KindOf(spec));
  ORIEL_ASSIGN_OR_RETURN(const Function function,
                         FindTyped(spec, device, "oriel_" + spec.kernel, {first.dtype}));
  const int64_t count = first.num_elements();
  const Grid blocks = BlocksFor(device, count * runtime::DTypeBytes(first.dtype) / 16, kThreads);
  return KernelFn([=](const KernelArgs& args) -> absl::Status {
    if (count == 0) return absl::OkStatus();
    void* arguments[2 + kOperands + kResults] = {const_cast<ActivationKind*>(&kind)};
    size_t next = 1;
    for (size_t i = 0; i < kOperands; ++i) {
      arguments[next++] = const_cast<const void**>(&args.operands[i]);
    }
    for (size_t i = 0; i < kResults; ++i) arguments[next++] = const_cast<void**>(&args.results[i]);
    arguments[next] = const_cast<int64_t*>(&count);
    return function.LaunchArray(blocks, {kThreads}, /*shared_bytes=*/0, StreamOf(args), arguments);
  });
}

constexpr Factory kActivation = MakeKind<1, 1>;
constexpr Factory kActivationGrad = MakeKind<2, 1>;
constexpr Factory kGatedActivation = MakeKind<2, 1>;
constexpr Factory kGatedActivationGrad = MakeKind<3, 2>;
ORIEL_REGISTER_CUDA_KERNEL("activation", 0, kActivation);
ORIEL_REGISTER_CUDA_KERNEL("activation_grad", 0, kActivationGrad);
ORIEL_REGISTER_CUDA_KERNEL("gated_activation", 0, kGatedActivation);
ORIEL_REGISTER_CUDA_KERNEL("gated_activation_grad", 0, kGatedActivationGrad);

}  // namespace
}  // namespace oriel::kernels::cuda
