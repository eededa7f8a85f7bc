// Launches of rope.cu.
#include <algorithm>

#include "kernels/attention/rope.h"
#include "kernels/attention/rope_args.h"
#include "kernels/cuda/factory.h"
#include "kernels/cuda/registry.h"
#include "runtime/base/status.h"

namespace oriel::kernels::cuda {
namespace {

constexpr int kThreads = 256;

// Whether each access to pairs of a table is one of `width` elements, aligned to as many, or of one
// and the same element.
bool InPacks(const RopeTable& table, int64_t width) {
  return table.step == 0 ||
         (table.step == 1 && table.columns % width == 0 && table.second % width == 0);
}

absl::StatusOr<KernelFn> MakeRope(const KernelSpec& spec, Device& device) {
  ORIEL_ASSIGN_OR_RETURN(const RopeSpec rope, AnalyzeRope(spec));
  const BroadcastPlan& plan = rope.rows;
  if (plan.outer.size() + 1 > RopeTable::kDims) return Unsupported(spec, "has many dimensions");
  const DType dtype = spec.operands[0].dtype, angles = spec.operands[1].dtype;

  RopeArgs args{};
  args.n = rope.columns;
  args.rows = args.n == 0 ? 0 : spec.operands[0].num_elements() / args.n;
  args.rotary_dim = rope.rotary_dim;
  args.inverse = rope.inverse ? 1 : 0;
  args.step = rope.pairs[0].step;
  args.second = rope.pairs[0].second;
  RopeTable* tables[] = {&args.cos, &args.sin};
  for (int t = 0; t < 2; ++t) {
    RopeTable& table = *tables[t];
    table.columns = rope.table_columns[1 + t];
    table.step = rope.pairs[1 + t].step;
    table.second = rope.pairs[1 + t].second;
    for (size_t d = 0; d < plan.outer.size(); ++d) table.strides[d] = plan.strides[d][1 + t];
    table.strides[plan.outer.size()] = plan.varies[1 + t] ? 1 : 0;
  }
  for (size_t d = 0; d < plan.outer.size(); ++d) args.sizes[d] = plan.outer[d];
  args.sizes[plan.outer.size()] = plan.inner;
  args.dims = static_cast<int32_t>(plan.outer.size()) + 1;

  const int64_t bytes = std::max<int64_t>(runtime::DTypeBytes(dtype), runtime::DTypeBytes(angles));
  const int64_t width = 16 / bytes;
  const bool packs = !rope.interleaved && args.n % width == 0 && args.rotary_dim / 2 % width == 0 &&
                     InPacks(args.cos, width) && InPacks(args.sin, width);
  ORIEL_ASSIGN_OR_RETURN(
      const Function function,
      FindTyped(spec, device, packs ? "oriel_rope_packs" : "oriel_rope", {dtype, angles}));
  const int64_t wanted =
      std::max(args.rotary_dim / 2 / (packs ? width : 1), args.n - args.rotary_dim);
  unsigned across = 1;
  while (across < kThreads && across < wanted) across *= 2;
  const unsigned down = kThreads / across;
  const Grid blocks = BlocksFor(device, args.rows, down);
  return KernelFn([=](const KernelArgs& launch) {
    if (args.rows * args.n == 0) return absl::OkStatus();
    return function.Launch(blocks, {across, down}, StreamOf(launch), args, launch.operands[0],
                           launch.operands[1], launch.operands[2], launch.results[0]);
  });
}

ORIEL_REGISTER_CUDA_KERNEL("rope", 0, MakeRope);

}  // namespace
}  // namespace oriel::kernels::cuda
