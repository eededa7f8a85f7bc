// Launches of softmax.cu.
#include "kernels/cuda/factory.h"
#include "kernels/cuda/registry.h"
#include "kernels/cuda/rows.h"
#include "runtime/base/status.h"

namespace oriel::kernels::cuda {
namespace {

// Of both: all operands and the result are of one type and shape.
absl::StatusOr<KernelFn> Make(const KernelSpec& spec, Device& device, const std::string& stem) {
  const TensorSpec& x = spec.operands[0];
  for (size_t i = 1; i < spec.operands.size(); ++i) {
    ORIEL_RETURN_IF_ERROR(CheckOperand(spec, i, x.dtype, x.shape));
  }
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, x.dtype, x.shape));
  ORIEL_ASSIGN_OR_RETURN(const int64_t dim, DimAttribute(spec, "dim", x.rank()));
  const int64_t outer = SizeOf(x.shape, 0, dim), n = x.shape[dim];
  const int64_t inner = SizeOf(x.shape, dim + 1, x.rank()), lines = outer * inner;
  const bool is_last = inner == 1, has_dy = spec.operands.size() == 2;
  const std::string name = stem + (is_last ? "_rows" : "_columns");
  ORIEL_ASSIGN_OR_RETURN(const Function function, FindTyped(spec, device, name, {x.dtype}));
  if (lines * n == 0) return KernelFn([](const KernelArgs&) { return absl::OkStatus(); });
  RowGrid grid = RowGridFor(device, lines, n, runtime::DTypeBytes(x.dtype));
  if (!is_last) grid = {BlocksFor(device, lines, 256), {256}};
  return KernelFn([=](const KernelArgs& args) {
    void* result = args.results[0];
    const void* first = args.operands[0];
    const CUstream stream = StreamOf(args);
    if (has_dy) {
      const void* second = args.operands[1];
      if (is_last) {
        return function.Launch(grid.blocks, grid.threads, stream, first, second, result, lines, n);
      }
      return function.Launch(grid.blocks, grid.threads, stream, first, second, result, lines, n,
                             inner);
    }
    if (is_last) return function.Launch(grid.blocks, grid.threads, stream, first, result, lines, n);
    return function.Launch(grid.blocks, grid.threads, stream, first, result, lines, n, inner);
  });
}

absl::StatusOr<KernelFn> MakeSoftmax(const KernelSpec& spec, Device& device) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 1, 1));
  return Make(spec, device, "oriel_softmax");
}
absl::StatusOr<KernelFn> MakeSoftmaxGrad(const KernelSpec& spec, Device& device) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2, 1));
  return Make(spec, device, "oriel_softmax_grad");
}

ORIEL_REGISTER_CUDA_KERNEL("softmax", 0, MakeSoftmax);
ORIEL_REGISTER_CUDA_KERNEL("softmax_grad", 0, MakeSoftmaxGrad);

}  // namespace
}  // namespace oriel::kernels::cuda
