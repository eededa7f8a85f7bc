// Launches of embedding.cu and scatter_add.cu.
#include <algorithm>

#include "kernels/cuda/factory.h"
#include "kernels/cuda/registry.h"
#include "kernels/embedding/embedding.h"
#include "kernels/embedding/index_sort.h"
#include "runtime/base/status.h"

namespace oriel::kernels::cuda {
namespace {

constexpr int kThreads = 256;

absl::StatusOr<KernelFn> MakeGather(const KernelSpec& spec, Device& device) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2, 3, 1));
  const DType index = spec.operands[1].dtype;
  if (index != DType::kI64 && index != DType::kI32) {
    return Unsupported(spec, "takes indices of i64 and i32");
  }
  ORIEL_ASSIGN_OR_RETURN(
      const GatherShape shape,
      GatherShape::Make(spec, spec.operands[0], spec.operands[1], spec.results[0]));
  GatherArgs args = IndexArgs(spec, device, shape, "index");
  const int64_t row_bytes = shape.inner * runtime::DTypeBytes(spec.operands[0].dtype);
  const int64_t unit = row_bytes % 16 == 0 ? 16 : row_bytes % 4 == 0 ? 4 : 1;
  args.inner = row_bytes / unit;
  ORIEL_ASSIGN_OR_RETURN(const Function function,
                         FindTyped(spec, device, absl::StrCat("oriel_gather_", unit), {index}));
  // As many threads along a row as it has units, but no more than a block has.
  unsigned x = 1;
  while (x < kThreads && x < args.inner) x *= 2;
  const unsigned y = kThreads / x;
  const Grid blocks = BlocksFor(device, shape.outer * shape.count, y);
  return KernelFn([=](const KernelArgs& launch) {
    if (shape.outer * shape.count == 0) return absl::OkStatus();
    return function.Launch(blocks, {x, y}, StreamOf(launch), AtLaunch(args, shape, launch),
                           launch.operands[0], launch.operands[1], launch.results[0]);
  });
}

absl::StatusOr<KernelFn> MakeScatterAdd(const KernelSpec& spec, Device& device) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2, 3, 1));
  const TensorSpec &indices = spec.operands[0], &updates = spec.operands[1];
  const TensorSpec& result = spec.results[0];
  ORIEL_ASSIGN_OR_RETURN(const GatherShape shape,
                         GatherShape::Make(spec, {updates.dtype, result.shape}, indices, updates));
  if (result.dtype != updates.dtype && result.dtype != ComputeDType(updates.dtype)) {
    return Malformed(spec, "updates and result differ in type");
  }
  ORIEL_ASSIGN_OR_RETURN(const IndexSort sort,
                         IndexSort::Make(spec, device, shape, indices.dtype, "index"));
  ORIEL_ASSIGN_OR_RETURN(const Function add, FindTyped(spec, device, "oriel_scatter_add",
                                                       {updates.dtype, result.dtype}));
  ORIEL_RETURN_IF_ERROR(device.AddScratch(sort.scratch_bytes()));
  const int64_t strip = kStripBytes / runtime::DTypeBytes(updates.dtype);
  const int64_t parts = (shape.count + kTile - 1) / kTile * ((shape.inner + strip - 1) / strip);
  const int64_t y = std::clamp<int64_t>(shape.outer, 1, 65535);
  const Grid blocks = {static_cast<unsigned>(parts), static_cast<unsigned>(y),
                       static_cast<unsigned>((shape.outer + y - 1) / y)};
  const size_t bytes = static_cast<size_t>(result.bytes());
  const Device* from = &device;
  return KernelFn([=](const KernelArgs& launch) -> absl::Status {
    const CUstream stream = StreamOf(launch);
    if (bytes == 0) return absl::OkStatus();
    ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(from->driver(), cuMemsetD8Async,
                                     reinterpret_cast<CUdeviceptr>(launch.results[0]), 0, bytes,
                                     stream));
    if (parts == 0) return absl::OkStatus();
    ORIEL_ASSIGN_OR_RETURN(const SortedIndices sorted,
                           sort.Launch(launch, launch.operands[0], from->scratch()));
    return add.Launch(blocks, {kThreads}, stream, sort.args(launch), sorted, launch.operands[1],
                      launch.results[0]);
  });
}

ORIEL_REGISTER_CUDA_KERNEL("gather", 0, MakeGather);
ORIEL_REGISTER_CUDA_KERNEL("scatter_add", 0, MakeScatterAdd);

}  // namespace
}  // namespace oriel::kernels::cuda
