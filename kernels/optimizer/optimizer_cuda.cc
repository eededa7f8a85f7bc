// Launches of optimizer.cu.
#include <vector>

#include "kernels/cuda/factory.h"
#include "kernels/cuda/registry.h"
#include "kernels/optimizer/optimizer.h"
#include "kernels/optimizer/optimizer_args.h"
#include "runtime/base/status.h"

namespace oriel::kernels::cuda {
namespace {

constexpr int kThreads = 256;  // as in optimizer.cu

// Parameters that one launch steps.
struct StepLaunch {
  StepArgs args;  // but for addresses
  std::vector<int> tensors;
  Grid blocks;
};

// Launches for all that are not empty. `step` has the attributes.
absl::StatusOr<std::vector<StepLaunch>> StepLaunches(const KernelSpec& spec, const Device& device,
                                                     const StepShape& shape, const StepArgs& step) {
  constexpr int64_t kMaxChunks = 1 << 30;
  std::vector<StepLaunch> launches;
  for (int i = 0; i < shape.count; ++i) {
    const int64_t count = spec.operands[i].num_elements();
    const int64_t chunks = (count + kStepChunk - 1) / kStepChunk;
    if (chunks == 0) continue;
    if (chunks > kMaxChunks) return Unsupported(spec, "a tensor has too many elements");
    if (launches.empty() || launches.back().args.used == kStepTensors ||
        launches.back().args.first_chunk[launches.back().args.used] + chunks > kMaxChunks) {
      launches.push_back({step, {}, {}});
    }
    StepArgs& args = launches.back().args;
    const int32_t used = args.used++;
    args.tensors[used].count = count;
    args.first_chunk[used + 1] = args.first_chunk[used] + static_cast<int32_t>(chunks);
    launches.back().tensors.push_back(i);
  }
  for (StepLaunch& launch : launches) {
    launch.blocks = BlocksFor(device, launch.args.first_chunk[launch.args.used], 1);
  }
  return launches;
}

// Of kernels with the attributes in `step` and `states` states for each parameter; what `scalars`
// stand behind the tensors is the launch's too.
absl::StatusOr<KernelFn> MakeStep(const KernelSpec& spec, Device& device, const char* stem,
                                  int states, int scalars, const StepArgs& step) {
  ORIEL_ASSIGN_OR_RETURN(const StepShape shape, StepShape::Make(spec, 2 + states, scalars));
  ORIEL_ASSIGN_OR_RETURN(const Function function,
                         FindTyped(spec, device, stem, {spec.operands[0].dtype, shape.gradient}));
  ORIEL_ASSIGN_OR_RETURN(const std::vector<StepLaunch> launches,
                         StepLaunches(spec, device, shape, step));
  return KernelFn([=](const KernelArgs& args) {
    const int n = shape.count, own = (2 + states) * n;
    const int behind = own + (shape.remainders ? n : 0);
    for (const StepLaunch& launch : launches) {
      StepArgs now = launch.args;
      for (int j = 0; j < now.used; ++j) {
        const int i = launch.tensors[j];
        StepTensor& tensor = now.tensors[j];
        tensor.p = args.operands[i];
        tensor.gradient = args.operands[n + i];
        tensor.new_p = args.results[i];
        if (states > 0) {
          tensor.m = args.operands[2 * n + i];
          tensor.new_m = args.results[n + i];
        }
        if (states > 1) {
          tensor.v = args.operands[3 * n + i];
          tensor.new_v = args.results[2 * n + i];
        }
        if (shape.remainders) tensor.remainder = args.operands[own + i];
        if (shape.rounded || shape.remainders) tensor.behind = args.results[own - n + i];
      }
      if (scalars == 3) {
        ORIEL_RETURN_IF_ERROR(function.Launch(launch.blocks, {kThreads}, StreamOf(args), now,
                                              args.operands[behind], args.operands[behind + 1],
                                              args.operands[behind + 2]));
      } else {
        ORIEL_RETURN_IF_ERROR(function.Launch(launch.blocks, {kThreads}, StreamOf(args), now,
                                              args.operands[behind], args.operands[behind + 1]));
      }
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<KernelFn> MakeSgd(const KernelSpec& spec, Device& device) {
  StepArgs step = {};
  ORIEL_ASSIGN_OR_RETURN(step.weight_decay, spec.Float("weight_decay"));
  return MakeStep(spec, device, "oriel_sgd", /*states=*/0, /*scalars=*/2, step);
}

absl::StatusOr<KernelFn> MakeSgdMomentum(const KernelSpec& spec, Device& device) {
  StepArgs step = {};
  ORIEL_ASSIGN_OR_RETURN(step.momentum, spec.Float("momentum"));
  ORIEL_ASSIGN_OR_RETURN(step.weight_decay, spec.Float("weight_decay"));
  ORIEL_ASSIGN_OR_RETURN(const int64_t nesterov, spec.Int("nesterov"));
  step.nesterov = nesterov != 0 ? 1 : 0;
  return MakeStep(spec, device, "oriel_sgd_momentum", /*states=*/1, /*scalars=*/2, step);
}

absl::StatusOr<KernelFn> MakeAdamW(const KernelSpec& spec, Device& device) {
  StepArgs step = {};
  ORIEL_ASSIGN_OR_RETURN(step.beta1, spec.Float("beta1"));
  ORIEL_ASSIGN_OR_RETURN(step.beta2, spec.Float("beta2"));
  ORIEL_ASSIGN_OR_RETURN(step.epsilon, spec.Float("epsilon"));
  ORIEL_ASSIGN_OR_RETURN(step.weight_decay, spec.Float("weight_decay"));
  return MakeStep(spec, device, "oriel_adamw", /*states=*/2, /*scalars=*/3, step);
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
ORIEL_REGISTER_CUDA_KERNEL("sgd_momentum", 0, MakeSgdMomentum);
ORIEL_REGISTER_CUDA_KERNEL("adamw", 0, MakeAdamW);
ORIEL_REGISTER_CUDA_KERNEL("sum_squares", 0, MakeSumSquares);

}  // namespace
}  // namespace oriel::kernels::cuda
