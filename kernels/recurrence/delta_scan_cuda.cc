// Launches of delta_scan.cu.
#include "kernels/cuda/factory.h"
#include "kernels/cuda/registry.h"
#include "kernels/recurrence/delta_scan.h"
#include "runtime/base/status.h"

namespace oriel::kernels::cuda {
namespace {

absl::StatusOr<KernelFn> MakeDeltaScan(const KernelSpec& spec, Device& device) {
  ORIEL_ASSIGN_OR_RETURN(const DeltaScan s, DeltaScanOf(spec));
  const DType dtype = spec.operands[0].dtype;
  const int64_t row_bytes = (s.k + s.c) * runtime::DTypeBytes(ComputeDType(dtype));
  if (row_bytes * kDeltaScanFewColumns > kDeltaScanBytes) {
    return Unsupported(spec, "a state and a chunk have more rows than a block's shared memory");
  }
  const bool few = dtype == DType::kF64 || row_bytes * kDeltaScanColumns > kDeltaScanBytes;
  ORIEL_ASSIGN_OR_RETURN(
      const Function function,
      FindTyped(spec, device, few ? "oriel_delta_scan_few" : "oriel_delta_scan", {dtype}));
  const int64_t columns = few ? kDeltaScanFewColumns : kDeltaScanColumns;
  const Grid blocks = BlocksFor(device, s.batch * ((s.v + columns - 1) / columns), 1);
  return KernelFn([=](const KernelArgs& args) {
    if (s.batch * s.v == 0) return absl::OkStatus();
    return function.Launch(blocks, {kDeltaScanThreads}, StreamOf(args), s, args.operands[0],
                           args.operands[1], args.operands[2], args.operands[3], args.operands[4],
                           s.adds ? args.operands[5] : nullptr, args.results[0], args.results[1],
                           args.results[2]);
  });
}

ORIEL_REGISTER_CUDA_KERNEL("delta_scan", 0, MakeDeltaScan);

}  // namespace
}  // namespace oriel::kernels::cuda
