// Launches of optimizer.cu.
#include <vector>

#include "kernels/cuda/factory.h"
#include "kernels/cuda/registry.h"
#include "kernels/optimizer/optimizer_args.h"
#include "runtime/base/status.h"

namespace oriel::kernels::cuda {
namespace {

constexpr int kThreads = 256, kWidth = 4;  // as in optimizer.cu

absl::StatusOr<KernelFn> MakeSgd(const KernelSpec& spec, Device& device) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 4, 1));
  const TensorSpec &p = spec.operands[0], &g = spec.operands[1];
  ORIEL_ASSIGN_OR_RETURN(const double weight_decay, spec.Float("weight_decay"));
  ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 1, g.dtype, p.shape));
  ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 2, p.dtype, {}));
  ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 3, p.dtype, {}));
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, p.dtype, p.shape));
  ORIEL_ASSIGN_OR_RETURN(const Function function,
                         FindTyped(spec, device, "oriel_sgd", {p.dtype, g.dtype}));
  const int64_t count = p.num_elements();
  const Grid blocks = BlocksFor(device, count, kThreads * kWidth);
  return KernelFn([=](const KernelArgs& args) {
    if (count == 0) return absl::OkStatus();
    return function.Launch(blocks, {kThreads}, StreamOf(args), count, weight_decay,
                           args.operands[0], args.operands[1], args.operands[2], args.operands[3],
                           args.results[0]);
  });
}

absl::StatusOr<KernelFn> MakeAdamW(const KernelSpec& spec, Device& device) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 7, 3));
  const TensorSpec &p = spec.operands[0], &g = spec.operands[1];
  AdamWArgs adamw{p.num_elements(), 0, 0, 0, 0};
  ORIEL_ASSIGN_OR_RETURN(adamw.beta1, spec.Float("beta1"));
  ORIEL_ASSIGN_OR_RETURN(adamw.beta2, spec.Float("beta2"));
  ORIEL_ASSIGN_OR_RETURN(adamw.epsilon, spec.Float("epsilon"));
  ORIEL_ASSIGN_OR_RETURN(adamw.weight_decay, spec.Float("weight_decay"));
  ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 1, g.dtype, p.shape));
  for (size_t i = 2; i < 7; ++i) {
    ORIEL_RETURN_IF_ERROR(CheckOperand(spec, i, p.dtype, i < 4 ? p.shape : Shape{}));
  }
  for (size_t i = 0; i < 3; ++i) ORIEL_RETURN_IF_ERROR(CheckResult(spec, i, p.dtype, p.shape));
  ORIEL_ASSIGN_OR_RETURN(const Function function,
                         FindTyped(spec, device, "oriel_adamw", {p.dtype, g.dtype}));
  const Grid blocks = BlocksFor(device, adamw.count, kThreads * kWidth);
  return KernelFn([=](const KernelArgs& args) {
    if (adamw.count == 0) return absl::OkStatus();
    return function.Launch(blocks, {kThreads}, StreamOf(args), adamw, args.operands[0],
                           args.operands[1], args.operands[2], args.operands[3], args.operands[4],
                           args.operands[5], args.operands[6], args.results[0], args.results[1],
                           args.results[2]);
  });
}

// Tensors that one launch sums, and where its chunks' sums lie.
struct SquaresLaunch {
  SquaresArgs args;  // but for addresses
  std::vector<int> operands;
  int64_t first_sum;
};

absl::StatusOr<KernelFn> MakeSumSquares(const KernelSpec& spec, Device& device) {
  if (spec.results.size() != 1) return Malformed(spec, "needs one result");
  const DType dtype = spec.results[0].dtype;
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, dtype, {}));
  ORIEL_ASSIGN_OR_RETURN(const Function function,
                         FindTyped(spec, device, "oriel_sum_squares", {dtype}));
  ORIEL_ASSIGN_OR_RETURN(const Function finish,
                         FindTyped(spec, device, "oriel_finish_squares", {dtype}));
  std::vector<SquaresLaunch> launches;
  int64_t sums = 0;
  for (size_t i = 0; i < spec.operands.size(); ++i) {
    const TensorSpec& operand = spec.operands[i];
    const bool is_bf16 = operand.dtype == DType::kBF16 && dtype == DType::kF32;
    if (!is_bf16) ORIEL_RETURN_IF_ERROR(CheckOperand(spec, i, dtype, operand.shape));
    const int64_t count = operand.num_elements();
    const int64_t chunks = (count + kSquaresChunk - 1) / kSquaresChunk;
    if (chunks == 0) continue;
    if (chunks > (1 << 30)) return Unsupported(spec, "a tensor has too many elements");
    if (launches.empty() || launches.back().args.used == kSquaresTensors ||
        launches.back().args.first_block[launches.back().args.used] + chunks > (1 << 30)) {
      launches.push_back({SquaresArgs{}, {}, sums});
    }
    SquaresArgs& args = launches.back().args;
    const int32_t used = args.used++;
    args.counts[used] = count;
    args.first_block[used + 1] = args.first_block[used] + static_cast<int32_t>(chunks);
    if (is_bf16) args.is_bf16[used / 32] |= 1u << (used % 32);
    launches.back().operands.push_back(static_cast<int>(i));
    sums += chunks;
  }
  ORIEL_RETURN_IF_ERROR(device.AddScratch(sums * static_cast<int64_t>(sizeof(double))));
  return KernelFn([=, &device](const KernelArgs& args) {
    const CUdeviceptr scratch = device.scratch();
    for (const SquaresLaunch& launch : launches) {
      SquaresArgs squares = launch.args;
      for (int32_t i = 0; i < squares.used; ++i) {
        squares.tensors[i] = args.operands[launch.operands[i]];
      }
      const unsigned blocks = static_cast<unsigned>(squares.first_block[squares.used]);
      const CUdeviceptr to = scratch + static_cast<CUdeviceptr>(launch.first_sum) * sizeof(double);
      ORIEL_RETURN_IF_ERROR(function.Launch({blocks}, {kThreads}, StreamOf(args), squares, to));
    }
    return finish.Launch({1}, {512}, StreamOf(args), scratch, sums, args.results[0]);
  });
}

ORIEL_REGISTER_CUDA_KERNEL("sgd", 0, MakeSgd);
ORIEL_REGISTER_CUDA_KERNEL("adamw", 0, MakeAdamW);
ORIEL_REGISTER_CUDA_KERNEL("sum_squares", 0, MakeSumSquares);

}  // namespace
}  // namespace oriel::kernels::cuda
