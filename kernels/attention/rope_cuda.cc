// Launches of rope.cu.
#include <algorithm>

#include "kernels/attention/rope_args.h"
#include "kernels/cuda/factory.h"
#include "kernels/cuda/registry.h"
#include "kernels/elementwise/broadcast.h"
#include "runtime/base/status.h"

namespace oriel::kernels::cuda {
namespace {

constexpr int kThreads = 256;

// Where the two elements of a pair lie in a row of `columns`.
void SetPairs(int64_t columns, int64_t rotary_dim, bool interleaved, int64_t* step,
              int64_t* second) {
  const bool one_angle = columns != rotary_dim;
  *step = columns == 1 ? 0 : !one_angle && interleaved ? 2 : 1;
  *second = one_angle || columns == 1 ? 0 : interleaved ? 1 : rotary_dim / 2;
}

// Whether each access to pairs of a table is one of `width` elements, aligned to as many, or of one
// and the same element.
bool InPacks(const RopeTable& table, int64_t width) {
  return table.step == 0 ||
         (table.step == 1 && table.columns % width == 0 && table.second % width == 0);
}

absl::StatusOr<KernelFn> MakeRope(const KernelSpec& spec, Device& device) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 3, 1));
  const TensorSpec& x = spec.operands[0];
  const DType angles = spec.operands[1].dtype;
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, x.dtype, x.shape));
  if (x.rank() < 1) return Malformed(spec, "the input has no dimension");
  const int64_t n = x.shape.back();
  ORIEL_ASSIGN_OR_RETURN(int64_t rotary_dim, IntOr(spec, "rotary_dim", 0));
  if (rotary_dim == 0) rotary_dim = n;
  if (rotary_dim < 0 || rotary_dim > n || rotary_dim % 2 != 0) {
    return Malformed(spec, "rotates no even part of the last dimension");
  }
  ORIEL_ASSIGN_OR_RETURN(const bool interleaved, FlagOr(spec, "interleaved", false));
  ORIEL_ASSIGN_OR_RETURN(const bool inverse, FlagOr(spec, "inverse", false));
  std::vector<Shape> rows;
  for (const TensorSpec& operand : spec.operands) {
    const bool is_input = rows.empty();
    const int64_t columns = operand.rank() == x.rank() ? operand.shape.back() : 0;
    if (operand.dtype != (is_input ? x.dtype : angles) ||
        (!is_input && columns != rotary_dim && columns != rotary_dim / 2 && columns != 1)) {
      return Malformed(spec, "cos or sin does not fit the input");
    }
    rows.emplace_back(operand.shape.begin(), operand.shape.end() - 1);
  }
  if (angles != x.dtype && angles != ComputeDType(x.dtype)) {
    return Malformed(spec, "cos or sin does not fit the input");
  }
  ORIEL_ASSIGN_OR_RETURN(const BroadcastPlan plan, BroadcastPlan::Make(spec, rows, rows[0]));
  if (plan.outer.size() + 1 > RopeTable::kDims) return Unsupported(spec, "has many dimensions");

  RopeArgs args{};
  args.rows = runtime::NumElements(rows[0]);
  args.n = n;
  args.rotary_dim = rotary_dim;
  args.inverse = inverse ? 1 : 0;
  SetPairs(rotary_dim, rotary_dim, interleaved, &args.step, &args.second);
  RopeTable* tables[] = {&args.cos, &args.sin};
  for (int t = 0; t < 2; ++t) {
    RopeTable& table = *tables[t];
    table.columns = spec.operands[1 + t].shape.back();
    SetPairs(table.columns, rotary_dim, interleaved, &table.step, &table.second);
    for (size_t d = 0; d < plan.outer.size(); ++d) table.strides[d] = plan.strides[d][1 + t];
    table.strides[plan.outer.size()] = plan.varies[1 + t] ? 1 : 0;
  }
  for (size_t d = 0; d < plan.outer.size(); ++d) args.sizes[d] = plan.outer[d];
  args.sizes[plan.outer.size()] = plan.inner;
  args.dims = static_cast<int32_t>(plan.outer.size()) + 1;

  const int64_t bytes =
      std::max<int64_t>(runtime::DTypeBytes(x.dtype), runtime::DTypeBytes(angles));
  const int64_t width = 16 / bytes;
  const bool packs = !interleaved && n % width == 0 && rotary_dim / 2 % width == 0 &&
                     InPacks(args.cos, width) && InPacks(args.sin, width);
  ORIEL_ASSIGN_OR_RETURN(
      const Function function,
      FindTyped(spec, device, packs ? "oriel_rope_packs" : "oriel_rope", {x.dtype, angles}));
  const int64_t wanted = std::max(rotary_dim / 2 / (packs ? width : 1), n - rotary_dim);
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
