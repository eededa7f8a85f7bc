// Launches of reduce.cu: one reduces one dimension, or cuts it into pieces of which each gives an
// accumulator, that are reduced by launches after it.
#include <algorithm>
#include <vector>

#include "kernels/cuda/factory.h"
#include "kernels/cuda/registry.h"
#include "kernels/cuda/rows.h"
#include "kernels/reduce/reduce.h"
#include "kernels/reduce/reduce_args.h"
#include "runtime/base/status.h"

namespace oriel::kernels::cuda {
namespace {

using Dims = std::vector<ReducePlan::Dim>;

// Blocks that are wanted, where there is work for them: a few for each multiprocessor of any
// device, because the order of sums is not to depend on it.
constexpr int64_t kBlocks = 1024;
// Of a row that is cut, in bytes.
constexpr int64_t kLeastPiece = 32 << 10;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The largest power of two that is no larger, for `x` of at least 1.
int64_t PowerOfTwo(int64_t x) {
  int64_t power = 1;
  while (power <= x / 2) power *= 2;
  return power;
}

struct Step {
  Function function;
  Grid blocks, threads;
  ReduceArgs args;
  int64_t pieces;
};

int64_t SizeOf(const Dims& dims, size_t begin, size_t end) {
  int64_t size = 1;
  for (size_t d = begin; d < end; ++d) size *= dims[d].size;
  return size;
}

// Cuts n into pieces, each of which takes so many blocks: `most` pieces, of a multiple of elements.
void Cut(Step* step, int64_t blocks, int64_t most, int64_t multiple) {
  ReduceArgs& args = step->args;
  const int64_t pieces = std::clamp<int64_t>(kBlocks / blocks, 1, std::max<int64_t>(1, most));
  const int64_t piece = std::max<int64_t>(1, CeilDiv(CeilDiv(args.n, pieces), multiple)) * multiple;
  args.piece = static_cast<int32_t>(piece);  // memory is less than 2^40 bytes
  step->pieces = std::max<int64_t>(1, CeilDiv(args.n, piece));
}

void PlanRows(const Device& device, int64_t bytes, Step* step) {
  const ReduceArgs& args = step->args;
  Cut(step, args.outer, args.n * bytes / kLeastPiece, 16);
  const RowGrid grid = RowGridFor(device, args.outer, args.piece, bytes, /*packs=*/4);
  step->blocks = {grid.blocks.x, static_cast<unsigned>(step->pieces)};
  step->threads = grid.threads;
}

void PlanColumns(int64_t bytes, Step* step) {
  const ReduceArgs& args = step->args;
  // Of threads for 8 rows each, 32 along x if there are as many columns, and more for few rows.
  const int64_t width = args.inner % (kColumnBytes / bytes) == 0 ? kColumnBytes / bytes : 1;
  const int64_t columns = args.inner / width;
  const int64_t across = PowerOfTwo(2 * columns - 1);
  int64_t x = std::min<int64_t>(across, 32);
  const int64_t y = std::min(PowerOfTwo(std::max<int64_t>(1, args.n / 8)), kColumnThreads / x);
  x = std::min(across, kColumnThreads / y);
  const int64_t strips = CeilDiv(columns, x);
  Cut(step, args.outer * strips, args.n / (8 * y), 1);
  step->blocks = {static_cast<unsigned>(strips), static_cast<unsigned>(step->pieces),
                  static_cast<unsigned>(std::min<int64_t>(args.outer, 65535))};
  step->threads = {static_cast<unsigned>(x), static_cast<unsigned>(y)};
}

// Reduces the largest of dims' reduced ones, so that little is left, and takes it away, or makes
// it its pieces.
absl::StatusOr<Step> NextStep(const KernelSpec& spec, const Device& device, DType from, DType sums,
                              ReduceOp op, int64_t divisor, Dims* dims) {
  size_t at = dims->size();
  int64_t others = 0;
  for (size_t d = 0; d < dims->size(); ++d) {
    if (!(*dims)[d].reduced) continue;
    ++others;
    if (at == dims->size() || (*dims)[d].size >= (*dims)[at].size) at = d;
  }
  Step step{};
  step.args = {
      SizeOf(*dims, 0, at), (*dims)[at].size, SizeOf(*dims, at + 1, dims->size()), 1, 0, op};
  const bool rows = step.args.inner == 1;
  if (rows) {
    PlanRows(device, runtime::DTypeBytes(from), &step);
  } else {
    PlanColumns(runtime::DTypeBytes(from), &step);
  }
  const bool last = others == 1 && step.pieces == 1;
  if (last) step.args.divisor = divisor;
  const DType to = last ? spec.results[0].dtype : sums;
  ORIEL_ASSIGN_OR_RETURN(
      step.function,
      FindTyped(spec, device, rows ? "oriel_reduce_rows" : "oriel_reduce_columns", {from, to}));
  if (step.pieces == 1) {
    dims->erase(dims->begin() + static_cast<int64_t>(at));
  } else {
    (*dims)[at].size = step.pieces;
  }
  return step;
}

template <ReduceOp kOp>
absl::StatusOr<KernelFn> MakeReduce(const KernelSpec& spec, Device& device) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 1, 1));
  ORIEL_ASSIGN_OR_RETURN(const ReducePlan plan, ReducePlan::Make(spec));
  const DType from = spec.operands[0].dtype;
  if (from == DType::kBool && kOp != ReduceOp::kMax && kOp != ReduceOp::kMin) {
    return Unsupported(spec, "takes no booleans");
  }
  if (plan.results == 0) return KernelFn([](const KernelArgs&) { return absl::OkStatus(); });
  const bool whole = from == DType::kI64 || from == DType::kI32 || from == DType::kBool;
  const DType sums = whole ? DType::kI64 : DType::kF64;
  const ReduceOp op = kOp == ReduceOp::kMean ? ReduceOp::kSum : kOp;
  const int64_t divisor = kOp == ReduceOp::kMean ? plan.reduced_elements : 1;
  Dims dims = plan.dims;
  if (plan.reduced_elements == 0) {
    // No element to read: each result is the neutral element.
    dims = {{plan.results, false}, {0, true}};
  } else if (plan.reduced_elements == 1) {
    dims = {{1, true}, {plan.results, false}};
  }
  // Sums of one step lie behind those of the one before it, and the next ones over those again.
  std::vector<Step> steps;
  int64_t sizes[2] = {};
  const auto reduces = [](const ReducePlan::Dim& dim) { return dim.reduced; };
  while (std::any_of(dims.begin(), dims.end(), reduces)) {
    if (!steps.empty()) {
      int64_t& size = sizes[steps.size() % 2];
      size = std::max(size, SizeOf(dims, 0, dims.size()) * runtime::DTypeBytes(sums));
    }
    ORIEL_ASSIGN_OR_RETURN(steps.emplace_back(), NextStep(spec, device, steps.empty() ? from : sums,
                                                          sums, op, divisor, &dims));
  }
  const int64_t second = CeilDiv(sizes[1], 64) * 64;
  if (steps.size() > 1) ORIEL_RETURN_IF_ERROR(device.AddScratch(second + sizes[0]));
  return KernelFn([=, &device](const KernelArgs& launch) -> absl::Status {
    CUdeviceptr x = reinterpret_cast<CUdeviceptr>(launch.operands[0]);
    for (size_t i = 0; i < steps.size(); ++i) {
      const CUdeviceptr y = i + 1 == steps.size() ? reinterpret_cast<CUdeviceptr>(launch.results[0])
                                                  : device.scratch() + (i % 2 == 0 ? 0 : second);
      ORIEL_RETURN_IF_ERROR(steps[i].function.Launch(steps[i].blocks, steps[i].threads,
                                                     StreamOf(launch), steps[i].args, x, y));
      x = y;
    }
    return absl::OkStatus();
  });
}

ORIEL_REGISTER_CUDA_KERNEL("reduce_sum", 0, MakeReduce<ReduceOp::kSum>);
ORIEL_REGISTER_CUDA_KERNEL("reduce_mean", 0, MakeReduce<ReduceOp::kMean>);
ORIEL_REGISTER_CUDA_KERNEL("reduce_max", 0, MakeReduce<ReduceOp::kMax>);
ORIEL_REGISTER_CUDA_KERNEL("reduce_min", 0, MakeReduce<ReduceOp::kMin>);
ORIEL_REGISTER_CUDA_KERNEL("reduce_prod", 0, MakeReduce<ReduceOp::kProd>);

}  // namespace
}  // namespace oriel::kernels::cuda
