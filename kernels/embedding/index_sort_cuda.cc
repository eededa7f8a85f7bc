#include <utility>

#include "kernels/cuda/factory.h"
#include "kernels/cuda/piece.h"
#include "kernels/cuda/registry.h"
#include "kernels/embedding/index_sort.h"
#include "runtime/base/status.h"

namespace oriel::kernels::cuda {
namespace {

constexpr int kThreads = 256;

}  // namespace

GatherArgs IndexArgs(const KernelSpec& spec, Device& device, const GatherShape& shape,
                     const char* what) {
  const int64_t rows = shape.rows.whole;
  const FaultArgs indices = FaultsOf(
      device, absl::StrCat(spec.kernel, ": ", what, " {value} at position {position} is outside [",
                           -rows, ", ", rows, ")"));
  return {shape.outer,
          shape.size,
          shape.inner,
          shape.count,
          shape.batch_count,
          shape.batch_size,
          PreparePiece(shape.rows, device),
          indices};
}

GatherArgs AtLaunch(GatherArgs args, const GatherShape& shape, const KernelArgs& launch) {
  args.rows = AtLaunch(args.rows, shape.rows, launch);
  return args;
}

absl::StatusOr<IndexSort> IndexSort::Make(const KernelSpec& spec, Device& device,
                                          const GatherShape& shape, DType index, const char* what) {
  if (shape.count > INT32_MAX) return Unsupported(spec, "takes less than 2^31 indices");
  const GatherArgs args = IndexArgs(spec, device, shape, what);
  ORIEL_ASSIGN_OR_RETURN(Function rows, FindTyped(spec, device, "oriel_scatter_rows", {index}));
  ORIEL_ASSIGN_OR_RETURN(Function sort, device.Find("oriel_scatter_sort"));
  return IndexSort(shape, args, BlocksFor(device, shape.count, kThreads), std::move(rows),
                   std::move(sort));
}

// Two of SortedIndices, which the sort goes back and forth between.
int64_t IndexSort::scratch_bytes() const {
  return 2 * shape_.count * static_cast<int64_t>(sizeof(int64_t) + sizeof(int32_t));
}

absl::StatusOr<SortedIndices> IndexSort::Launch(const KernelArgs& launch, const void* indices,
                                                CUdeviceptr scratch) const {
  const CUstream stream = StreamOf(launch);
  const int64_t count = shape_.count;
  int64_t* const rows = reinterpret_cast<int64_t*>(scratch);
  int32_t* const orders = reinterpret_cast<int32_t*>(rows + 2 * count);
  SortedIndices sorted{rows, orders}, other{rows + count, orders + count};
  ORIEL_RETURN_IF_ERROR(
      rows_.Launch(row_blocks_, {kThreads}, stream, args(launch), indices, sorted));
  const Grid blocks = {static_cast<unsigned>((count + kSorted - 1) / kSorted)};
  // Rows are up to `size`.
  for (int32_t shift = 0; shift < 63 && shape_.size >> shift != 0; shift += kSortBits) {
    ORIEL_RETURN_IF_ERROR(
        sort_.Launch(blocks, {kSortThreads}, stream, count, shift, sorted, other));
    std::swap(sorted, other);
  }
  return sorted;
}

}  // namespace oriel::kernels::cuda
