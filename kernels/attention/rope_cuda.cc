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

// Positions and heads of the input's rows.
void SetRows(const RopeSpec& rope, RopeArgs* args) {
  const BroadcastPlan& plan = rope.rows;
  const int dims = static_cast<int>(plan.outer.size()) + 1;
  const auto size = [&](int d) { return d + 1 == dims ? plan.inner : plan.outer[d]; };
  const auto stride = [&](int d, int operand) {
    return d + 1 == dims ? int64_t{plan.varies[operand]} : plan.strides[d][operand];
  };
  int heads = -1;  // the largest dimension in which the tables repeat
  for (int d = 0; d < dims; ++d) {
    const bool repeats = stride(d, 1) == 0 && stride(d, 2) == 0;
    if (repeats && (heads < 0 || size(d) > size(heads))) heads = d;
  }
  args->heads = args->head_rows = args->positions = 1;
  int64_t rows = 1;  // of the dimensions from here on
  for (int d = dims - 1; d >= 0; --d) {
    if (d == heads) {
      args->heads = size(d);
      args->head_rows = rows;
    }
    rows *= size(d);
  }
  for (int d = 0; d < dims; ++d) {
    rows /= std::max<int64_t>(size(d), 1);
    if (d == heads) continue;
    args->sizes[args->dims] = size(d);
    args->strides[args->dims] = rows;
    args->cos.strides[args->dims] = stride(d, 1);
    args->sin.strides[args->dims] = stride(d, 2);
    args->positions *= size(d);
    ++args->dims;
  }
}

absl::StatusOr<KernelFn> MakeRope(const KernelSpec& spec, Device& device) {
  ORIEL_ASSIGN_OR_RETURN(const RopeSpec rope, AnalyzeRope(spec));
  if (rope.rows.outer.size() + 1 > RopeTable::kDims) {
    return Unsupported(spec, "has many dimensions");
  }
  const DType dtype = spec.operands[0].dtype, angles = spec.operands[1].dtype;

  RopeArgs args{};
  args.n = rope.columns;
  args.rotary_dim = rope.rotary_dim;
  args.inverse = rope.inverse ? 1 : 0;
  args.step = rope.pairs[0].step;
  args.second = rope.pairs[0].second;
  RopeTable* tables[] = {&args.cos, &args.sin};
  for (int t = 0; t < 2; ++t) {
    tables[t]->columns = rope.table_columns[1 + t];
    tables[t]->step = rope.pairs[1 + t].step;
    tables[t]->second = rope.pairs[1 + t].second;
  }
  SetRows(rope, &args);

  const int64_t bytes = std::max<int64_t>(runtime::DTypeBytes(dtype), runtime::DTypeBytes(angles));
  const int64_t width = 16 / bytes;
  const bool packs = !rope.interleaved && args.n % width == 0 && args.rotary_dim / 2 % width == 0 &&
                     InPacks(args.cos, width) && InPacks(args.sin, width);
  ORIEL_ASSIGN_OR_RETURN(
      const Function function,
      FindTyped(spec, device, packs ? "oriel_rope_packs" : "oriel_rope", {dtype, angles}));
  const int64_t wanted =
      std::max(args.rotary_dim / 2, args.n - args.rotary_dim) / (packs ? width : 1);
  unsigned across = 1;
  while (across < kThreads && across < wanted) across *= 2;
  const unsigned down = kThreads / across;
  // As many heads to a thread as leave threads for all of the device, four at least.
  const int64_t resident = int64_t{2048} * std::max(1, device.properties().multiprocessors);
  const int64_t heads = args.heads * args.positions * across / resident / 4 * 4;
  args.heads_each = std::max({heads, int64_t{4}, (args.heads + 65534) / 65535});
  const Grid blocks = {static_cast<unsigned>((args.positions + down - 1) / down),
                       static_cast<unsigned>((args.heads + args.heads_each - 1) / args.heads_each)};
  return KernelFn([=](const KernelArgs& launch) {
    if (args.positions * args.heads * args.n == 0) return absl::OkStatus();
    return function.Launch(blocks, {across, down}, StreamOf(launch), args, launch.operands[0],
                           launch.operands[1], launch.operands[2], launch.results[0]);
  });
}

ORIEL_REGISTER_CUDA_KERNEL("rope", 0, MakeRope);

}  // namespace
}  // namespace oriel::kernels::cuda
