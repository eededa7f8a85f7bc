// Launches of embedding.cu and scatter_add.cu.
#include <algorithm>
#include <utility>

#include "kernels/cuda/factory.h"
#include "kernels/cuda/piece.h"
#include "kernels/cuda/registry.h"
#include "kernels/embedding/embedding.h"
#include "kernels/embedding/gather_args.h"
#include "runtime/base/status.h"

namespace oriel::kernels::cuda {
namespace {

constexpr int kThreads = 256;

GatherArgs ArgsOf(const KernelSpec& spec, Device& device, const GatherShape& shape) {
  const int64_t rows = shape.rows.whole;
  const FaultArgs indices = FaultsOf(
      device, absl::StrCat(spec.kernel, ": index {value} at position {position} is outside [",
                           -rows, ", ", rows, ")"));
  return {shape.outer, shape.size, shape.inner, shape.count, PreparePiece(shape.rows, device),
          indices};
}
GatherArgs At(GatherArgs args, const GatherShape& shape, const KernelArgs& launch) {
  args.rows = AtLaunch(args.rows, shape.rows, launch);
  return args;
}

absl::StatusOr<KernelFn> MakeGather(const KernelSpec& spec, Device& device) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2, 3, 1));
  const DType index = spec.operands[1].dtype;
  if (index != DType::kI64 && index != DType::kI32) {
    return Unsupported(spec, "takes indices of i64 and i32");
  }
  ORIEL_ASSIGN_OR_RETURN(
      const GatherShape shape,
      GatherShape::Make(spec, spec.operands[0], spec.operands[1], spec.results[0]));
  GatherArgs args = ArgsOf(spec, device, shape);
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
    return function.Launch(blocks, {x, y}, StreamOf(launch), At(args, shape, launch),
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
  if (shape.count > INT32_MAX) return Unsupported(spec, "takes less than 2^31 indices");
  const GatherArgs args = ArgsOf(spec, device, shape);
  ORIEL_ASSIGN_OR_RETURN(const Function rows_of,
                         FindTyped(spec, device, "oriel_scatter_rows", {indices.dtype}));
  ORIEL_ASSIGN_OR_RETURN(const Function sort, device.Find("oriel_scatter_sort"));
  ORIEL_ASSIGN_OR_RETURN(const Function add, FindTyped(spec, device, "oriel_scatter_add",
                                                       {updates.dtype, result.dtype}));
  // Two of SortedIndices, which the sort goes back and forth between.
  const int64_t count = shape.count, row_bytes = count * 8, order_bytes = count * 4;
  ORIEL_RETURN_IF_ERROR(device.AddScratch(2 * (row_bytes + order_bytes)));
  const Grid row_blocks = BlocksFor(device, count, kThreads);
  const Grid sort_blocks = {static_cast<unsigned>((count + kSorted - 1) / kSorted)};
  const int64_t strip = kStripBytes / runtime::DTypeBytes(updates.dtype);
  const int64_t parts = (count + kTile - 1) / kTile * ((shape.inner + strip - 1) / strip);
  const int64_t y = std::clamp<int64_t>(shape.outer, 1, 65535);
  const Grid blocks = {static_cast<unsigned>(parts), static_cast<unsigned>(y),
                       static_cast<unsigned>((shape.outer + y - 1) / y)};
  const size_t bytes = static_cast<size_t>(result.bytes());
  const Device* from = &device;
  return KernelFn([=](const KernelArgs& launch) {
    const CUstream stream = StreamOf(launch);
    if (bytes == 0) return absl::OkStatus();
    ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(from->driver(), cuMemsetD8Async,
                                     reinterpret_cast<CUdeviceptr>(launch.results[0]), 0, bytes,
                                     stream));
    if (parts == 0) return absl::OkStatus();
    const GatherArgs gather = At(args, shape, launch);
    char* const scratch = reinterpret_cast<char*>(from->scratch());
    const auto sorted_at = [&](char* rows, char* order) {
      return SortedIndices{reinterpret_cast<int64_t*>(rows), reinterpret_cast<int32_t*>(order)};
    };
    char* const orders = scratch + 2 * row_bytes;
    SortedIndices sorted = sorted_at(scratch, orders);
    SortedIndices other = sorted_at(scratch + row_bytes, orders + order_bytes);
    ORIEL_RETURN_IF_ERROR(
        rows_of.Launch(row_blocks, {kThreads}, stream, gather, launch.operands[0], sorted));
    // Rows are up to `size`.
    for (int32_t shift = 0; shift < 63 && shape.size >> shift != 0; shift += kSortBits) {
      ORIEL_RETURN_IF_ERROR(
          sort.Launch(sort_blocks, {kSortThreads}, stream, count, shift, sorted, other));
      std::swap(sorted, other);
    }
    return add.Launch(blocks, {kThreads}, stream, gather, sorted, launch.operands[1],
                      launch.results[0]);
  });
}

ORIEL_REGISTER_CUDA_KERNEL("gather", 0, MakeGather);
ORIEL_REGISTER_CUDA_KERNEL("scatter_add", 0, MakeScatterAdd);

}  // namespace
}  // namespace oriel::kernels::cuda
