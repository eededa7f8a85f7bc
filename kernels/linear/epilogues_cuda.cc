// linear_activation, linear_activation_grad and linear_grads on a device; see epilogues.h.
#include "kernels/common/checks.h"
#include "kernels/cuda/registry.h"
#include "kernels/linear/epilogues.h"
#include "kernels/linear/gemm_cuda.h"
#include "kernels/linear/linear.h"

namespace oriel::kernels::cuda {
namespace {

// --- of several launches

template <absl::StatusOr<KernelFn> (*kMake)(const KernelSpec&, const PrepareLaunch&)>
absl::StatusOr<KernelFn> MakeOfParts(const KernelSpec& spec, Device& device) {
  return kMake(spec, [&](const KernelSpec& part) { return Registry::Get().Prepare(part, device); });
}

// --- by cuBLASLt's epilogues

absl::StatusOr<std::shared_ptr<DeviceGemm>> PrepareGemm(const DeviceGemmShape& shape,
                                                        Device& device) {
  ORIEL_ASSIGN_OR_RETURN(std::shared_ptr<DeviceGemm> gemm, MakeCublasLtGemm(shape, device));
  ORIEL_RETURN_IF_ERROR(device.AddScratch(gemm->workspace_bytes()));
  return gemm;
}

absl::Status CheckKind(const KernelSpec& spec) {
  ORIEL_ASSIGN_OR_RETURN(const std::string kind, spec.String("kind"));
  if (kind == "gelu_tanh") return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("cuBLASLt: applies gelu_tanh, not ", kind));
}

absl::StatusOr<KernelFn> MakeActivation(const KernelSpec& spec, Device& device) {
  ORIEL_ASSIGN_OR_RETURN(const KernelSpec linear, LinearOfActivation(spec));
  ORIEL_RETURN_IF_ERROR(CheckKind(spec));
  ORIEL_ASSIGN_OR_RETURN(const GemmShape plain, LinearShape(linear));
  DeviceGemmShape shape(plain);
  const bool keeps = spec.results.size() == 2, bias = shape.bias;
  shape.epilogue = keeps ? Epilogue::kGeluKept : Epilogue::kGelu;
  ORIEL_ASSIGN_OR_RETURN(const std::shared_ptr<DeviceGemm> gemm, PrepareGemm(shape, device));
  return KernelFn([=, &device](const KernelArgs& args) {
    DeviceGemmArgs product{args.operands[0], args.operands[1], bias ? args.operands[2] : nullptr,
                           nullptr, args.results[0]};
    if (keeps) product.beside = args.results[1];
    return gemm->Launch(StreamOf(args), product, device.scratch());
  });
}

absl::StatusOr<KernelFn> MakeActivationGrad(const KernelSpec& spec, Device& device) {
  ORIEL_ASSIGN_OR_RETURN(const KernelSpec linear, LinearOfActivationGrad(spec));
  ORIEL_RETURN_IF_ERROR(CheckKind(spec));
  ORIEL_ASSIGN_OR_RETURN(const GemmShape plain, LinearShape(linear));
  DeviceGemmShape shape(plain);
  shape.epilogue = Epilogue::kGeluGrad;
  ORIEL_ASSIGN_OR_RETURN(const std::shared_ptr<DeviceGemm> gemm, PrepareGemm(shape, device));
  return KernelFn([=, &device](const KernelArgs& args) {
    DeviceGemmArgs product{args.operands[0], args.operands[1], nullptr, nullptr, args.results[0]};
    product.beside = const_cast<void*>(args.operands[2]);  // which is read
    return gemm->Launch(StreamOf(args), product, device.scratch());
  });
}

absl::StatusOr<KernelFn> MakeGrads(const KernelSpec& spec, Device& device) {
  ORIEL_ASSIGN_OR_RETURN(const KernelSpec weight, WeightGradOfGrads(spec));
  ORIEL_ASSIGN_OR_RETURN(const GemmShape plain, LinearWeightGradShape(weight));
  ORIEL_ASSIGN_OR_RETURN(const bool transposed, FlagOr(spec, "transpose_weight", false));
  DeviceGemmShape shape(plain);
  // The cotangent is `a` where the weight is stored as [n, k].
  shape.epilogue = transposed ? Epilogue::kSumsOfA : Epilogue::kSumsOfB;
  if (spec.results[1].dtype != shape.result) {
    return absl::UnimplementedError("cuBLASLt: sums a cotangent in the result's type");
  }
  ORIEL_ASSIGN_OR_RETURN(const std::shared_ptr<DeviceGemm> gemm, PrepareGemm(shape, device));
  const size_t addend = spec.operands.size() - 1;
  return KernelFn([=, &device](const KernelArgs& args) {
    DeviceGemmArgs product{args.operands[transposed ? 1 : 0], args.operands[transposed ? 0 : 1],
                           nullptr, args.operands[addend], args.results[0]};
    product.beside = args.results[1];
    return gemm->Launch(StreamOf(args), product, device.scratch());
  });
}

ORIEL_REGISTER_CUDA_KERNEL("linear_activation", 10, MakeActivation);
ORIEL_REGISTER_CUDA_KERNEL("linear_activation_grad", 10, MakeActivationGrad);
ORIEL_REGISTER_CUDA_KERNEL("linear_grads", 10, MakeGrads);
ORIEL_REGISTER_CUDA_KERNEL("linear_activation", 0, MakeOfParts<MakeLinearActivation>);
ORIEL_REGISTER_CUDA_KERNEL("linear_activation_grad", 0, MakeOfParts<MakeLinearActivationGrad>);
ORIEL_REGISTER_CUDA_KERNEL("linear_grads", 0, MakeOfParts<MakeLinearGrads>);

}  // namespace
}  // namespace oriel::kernels::cuda
