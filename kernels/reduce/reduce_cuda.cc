// Launches of reduce.cu.
#include <algorithm>

#include "kernels/cuda/factory.h"
#include "kernels/cuda/registry.h"
#include "kernels/cuda/rows.h"
#include "kernels/reduce/reduce.h"
#include "kernels/reduce/reduce_args.h"
#include "runtime/base/status.h"

namespace oriel::kernels::cuda {
namespace {

constexpr int64_t kAccumulatorBytes = 8;  // f64 or i64

absl::StatusOr<KernelFn> MakeAny(const KernelSpec& spec, Device& device, const ReducePlan& plan,
                                 ReduceOp op) {
  if (plan.dims.size() > ReduceAnyArgs::kDims) return Unsupported(spec, "has many dimensions");
  ORIEL_ASSIGN_OR_RETURN(
      const Function function,
      FindTyped(spec, device, "oriel_reduce_any", {spec.operands[0].dtype, spec.results[0].dtype}));
  ReduceAnyArgs args{};
  args.op = op;
  args.results = plan.results;
  args.elements = args.divisor = plan.reduced_elements;
  std::vector<int64_t> strides(plan.dims.size(), 1);
  for (size_t d = plan.dims.size(); d-- > 1;) strides[d - 1] = strides[d] * plan.dims[d].size;
  for (size_t d = 0; d < plan.dims.size(); ++d) {
    const ReducePlan::Dim& dim = plan.dims[d];
    int32_t& count = dim.reduced ? args.reduced : args.kept;
    (dim.reduced ? args.reduced_sizes : args.kept_sizes)[count] = dim.size;
    (dim.reduced ? args.reduced_strides : args.kept_strides)[count++] = strides[d];
  }
  const Grid blocks = BlocksFor(device, plan.results, 256);
  return KernelFn([=](const KernelArgs& launch) {
    return function.Launch(blocks, {256}, StreamOf(launch), args, launch.operands[0],
                           launch.results[0]);
  });
}

absl::StatusOr<KernelFn> MakeColumns(const KernelSpec& spec, Device& device, ReduceArgs args) {
  const DType from = spec.operands[0].dtype, to = spec.results[0].dtype;
  const int64_t strips = (args.inner + 31) / 32;
  // Enough blocks for the device, but no pieces of less than 64 rows.
  const int64_t wanted = int64_t{8} * std::max(1, device.properties().multiprocessors);
  const int64_t most = std::max<int64_t>(1, args.n / 64);
  args.pieces = std::clamp<int64_t>(wanted / std::max<int64_t>(1, args.outer * strips), 1, most);
  args.piece = (args.n + args.pieces - 1) / args.pieces;
  const Grid blocks = BlocksFor(device, args.outer * args.pieces * strips, 1);
  if (args.pieces == 1) {
    ORIEL_ASSIGN_OR_RETURN(const Function function,
                           FindTyped(spec, device, "oriel_reduce_columns", {from, to}));
    return KernelFn([=](const KernelArgs& launch) {
      return function.Launch(blocks, {32, 8}, StreamOf(launch), args, launch.operands[0],
                             launch.results[0]);
    });
  }
  ORIEL_ASSIGN_OR_RETURN(const Function pieces,
                         FindTyped(spec, device, "oriel_reduce_pieces", {from}));
  ORIEL_ASSIGN_OR_RETURN(const Function join,
                         FindTyped(spec, device, "oriel_reduce_join", {from, to}));
  const int64_t results = args.outer * args.inner;
  ORIEL_RETURN_IF_ERROR(device.AddScratch(results * args.pieces * kAccumulatorBytes));
  const Grid join_blocks = BlocksFor(device, results, 256);
  return KernelFn([=, &device](const KernelArgs& launch) {
    const CUdeviceptr partial = device.scratch();
    ORIEL_RETURN_IF_ERROR(
        pieces.Launch(blocks, {32, 8}, StreamOf(launch), args, launch.operands[0], partial));
    return join.Launch(join_blocks, {256}, StreamOf(launch), args, partial, launch.results[0]);
  });
}

template <ReduceOp kOp>
absl::StatusOr<KernelFn> MakeReduce(const KernelSpec& spec, Device& device) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 1, 1));
  ORIEL_ASSIGN_OR_RETURN(const ReducePlan plan, ReducePlan::Make(spec));
  const DType from = spec.operands[0].dtype, to = spec.results[0].dtype;
  if (from == DType::kBool && kOp != ReduceOp::kMax && kOp != ReduceOp::kMin) {
    return Unsupported(spec, "takes no booleans");
  }
  if (plan.results == 0) return KernelFn([](const KernelArgs&) { return absl::OkStatus(); });
  // Most launches are [outer, n, inner] with n reduced.
  ReduceArgs args{1, 1, 1, 1, 1, plan.reduced_elements, kOp};
  const auto& dims = plan.dims;
  size_t next = 0;
  if (plan.reduced_elements == 0) {
    // No element to read: each result is the neutral element.
    args.outer = plan.results;
    args.n = 0;
    next = dims.size();
  }
  if (next < dims.size() && !dims[next].reduced) args.outer = dims[next++].size;
  if (next < dims.size() && dims[next].reduced) args.n = dims[next++].size;
  if (next < dims.size() && !dims[next].reduced) args.inner = dims[next++].size;
  if (next < dims.size()) return MakeAny(spec, device, plan, kOp);
  if (args.inner > 1) return MakeColumns(spec, device, args);
  ORIEL_ASSIGN_OR_RETURN(const Function function,
                         FindTyped(spec, device, "oriel_reduce_rows", {from, to}));
  const RowGrid grid =
      RowGridFor(device, args.outer, args.n, runtime::DTypeBytes(from), /*packs=*/4);
  return KernelFn([=](const KernelArgs& launch) {
    return function.Launch(grid.blocks, grid.threads, StreamOf(launch), args, launch.operands[0],
                           launch.results[0]);
  });
}

ORIEL_REGISTER_CUDA_KERNEL("reduce_sum", 0, MakeReduce<ReduceOp::kSum>);
ORIEL_REGISTER_CUDA_KERNEL("reduce_mean", 0, MakeReduce<ReduceOp::kMean>);
ORIEL_REGISTER_CUDA_KERNEL("reduce_max", 0, MakeReduce<ReduceOp::kMax>);
ORIEL_REGISTER_CUDA_KERNEL("reduce_min", 0, MakeReduce<ReduceOp::kMin>);
ORIEL_REGISTER_CUDA_KERNEL("reduce_prod", 0, MakeReduce<ReduceOp::kProd>);

}  // namespace
}  // namespace oriel::kernels::cuda
