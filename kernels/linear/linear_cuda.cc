// matmul, linear, linear_add and linear_weight_grad on a device; see linear.h.
#include "kernels/common/checks.h"
#include "kernels/cuda/registry.h"
#include "kernels/linear/gemm_cuda.h"
#include "kernels/linear/linear.h"

namespace oriel::kernels::cuda {
namespace {

using MakeGemm = absl::StatusOr<std::shared_ptr<DeviceGemm>> (*)(const DeviceGemmShape&, Device&);

// Which operand of the launch is `a` and which `b`.
absl::StatusOr<KernelFn> Launch(const KernelSpec& spec, const GemmShape& shape, MakeGemm make,
                                Device& device, int a = 0, int b = 1) {
  ORIEL_ASSIGN_OR_RETURN(const std::shared_ptr<DeviceGemm> gemm,
                         make(DeviceGemmShape(shape), device));
  ORIEL_RETURN_IF_ERROR(device.AddScratch(gemm->workspace_bytes()));
  const bool bias = shape.bias;
  // Not read unless the product accumulates.
  const size_t addend = spec.operands.size() - 1;
  return KernelFn([=, &device](const KernelArgs& args) {
    return gemm->Launch(StreamOf(args),
                        {args.operands[a], args.operands[b], bias ? args.operands[2] : nullptr,
                         args.operands[addend], args.results[0]},
                        device.scratch());
  });
}

template <MakeGemm kMake>
absl::StatusOr<KernelFn> MakeMatmul(const KernelSpec& spec, Device& device) {
  ORIEL_ASSIGN_OR_RETURN(const GemmShape shape, MatmulShape(spec));
  return Launch(spec, shape, kMake, device);
}

template <MakeGemm kMake>
absl::StatusOr<KernelFn> MakeLinear(const KernelSpec& spec, Device& device) {
  ORIEL_ASSIGN_OR_RETURN(const GemmShape shape, LinearShape(spec));
  return Launch(spec, shape, kMake, device);
}

template <MakeGemm kMake>
absl::StatusOr<KernelFn> MakeLinearAdd(const KernelSpec& spec, Device& device) {
  ORIEL_ASSIGN_OR_RETURN(const GemmShape shape, LinearAddShape(spec));
  return Launch(spec, shape, kMake, device);
}

template <MakeGemm kMake>
absl::StatusOr<KernelFn> MakeLinearWeightGrad(const KernelSpec& spec, Device& device) {
  ORIEL_ASSIGN_OR_RETURN(const GemmShape shape, LinearWeightGradShape(spec));
  ORIEL_ASSIGN_OR_RETURN(const bool transposed, FlagOr(spec, "transpose_weight", false));
  return Launch(spec, shape, kMake, device, transposed ? 1 : 0, transposed ? 0 : 1);
}

ORIEL_REGISTER_CUDA_KERNEL("matmul", 10, MakeMatmul<MakeCublasLtGemm>);
ORIEL_REGISTER_CUDA_KERNEL("linear", 10, MakeLinear<MakeCublasLtGemm>);
ORIEL_REGISTER_CUDA_KERNEL("linear_add", 10, MakeLinearAdd<MakeCublasLtGemm>);
ORIEL_REGISTER_CUDA_KERNEL("linear_weight_grad", 10, MakeLinearWeightGrad<MakeCublasLtGemm>);
ORIEL_REGISTER_CUDA_KERNEL("matmul", 0, MakeMatmul<MakeTiledGemm>);
ORIEL_REGISTER_CUDA_KERNEL("linear", 0, MakeLinear<MakeTiledGemm>);
ORIEL_REGISTER_CUDA_KERNEL("linear_add", 0, MakeLinearAdd<MakeTiledGemm>);
ORIEL_REGISTER_CUDA_KERNEL("linear_weight_grad", 0, MakeLinearWeightGrad<MakeTiledGemm>);

}  // namespace
}  // namespace oriel::kernels::cuda
