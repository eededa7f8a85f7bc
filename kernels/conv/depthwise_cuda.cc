// Launches of depthwise.cu.
#include "kernels/conv/conv.h"
#include "kernels/conv/conv_launch.h"
#include "kernels/cuda/factory.h"
#include "kernels/cuda/registry.h"

namespace oriel::kernels::cuda {
namespace {

absl::StatusOr<DepthwiseLaunch> LaunchOf(const KernelSpec& spec, const ConvShape& s) {
  ORIEL_RETURN_IF_ERROR(CheckDepthwise(spec, s));
  DepthwiseLaunch launch{};
  launch.samples = s.batch;
  launch.channels = s.channels;
  const int64_t inputs = ConvShape::Product(s.input);
  int64_t most = std::max({inputs, s.positions(), s.patch()});
  for (int d = 0; d < 3; ++d) {
    // Places outside are computed, too.
    most = std::max(
        most, s.input[d] + s.lows[d] + s.output[d] * s.strides[d] + s.kernel[d] * s.dilations[d]);
    launch.input[d] = Divisor::By(s.input[d]);
    launch.output[d] = Divisor::By(s.output[d]);
    launch.kernel[d] = static_cast<int32_t>(s.kernel[d]);
    launch.strides[d] = Divisor::By(s.strides[d]);
    launch.lows[d] = static_cast<int32_t>(s.lows[d]);
    launch.dilations[d] = static_cast<int32_t>(s.dilations[d]);
  }
  if (most >= kSmallIndices) {
    return Unsupported(spec, "depthwise: more positions than 30 bits count");
  }
  launch.inputs = static_cast<int32_t>(inputs);
  launch.outputs = static_cast<int32_t>(s.positions());
  launch.taps = static_cast<int32_t>(s.patch());
  return launch;
}

absl::StatusOr<Function> FindOf(const KernelSpec& spec, const Device& device, const char* stem) {
  return FindTyped(spec, device, stem, {spec.operands[0].dtype, spec.results[0].dtype});
}

// A thread for each of so many elements of a channel, along y channels of all samples.
Grid GridOf(const DepthwiseLaunch& launch, int64_t elements) {
  const int64_t rows = launch.samples * launch.channels;
  return {static_cast<unsigned>((elements + kConvThreads - 1) / kConvThreads),
          static_cast<unsigned>(std::clamp<int64_t>(rows, 1, 65535))};
}

absl::StatusOr<KernelFn> MakeDepthwise(const KernelSpec& spec, Device& device) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2, 3, 1));
  ORIEL_ASSIGN_OR_RETURN(const ConvShape s, ConvShape::Make(spec, spec.operands[0],
                                                            spec.operands[1], spec.results[0]));
  ORIEL_ASSIGN_OR_RETURN(const DepthwiseLaunch launch, LaunchOf(spec, s));
  const bool has_bias = spec.operands.size() == 3;
  if (has_bias) {
    ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 2, spec.operands[0].dtype, {s.outputs}));
  }
  ORIEL_ASSIGN_OR_RETURN(const Function function, FindOf(spec, device, "oriel_depthwise"));
  return KernelFn([=](const KernelArgs& args) {
    if (launch.samples * launch.channels * launch.outputs == 0) return absl::OkStatus();
    const void* bias = has_bias ? args.operands[2] : nullptr;
    return function.Launch(GridOf(launch, launch.outputs), {kConvThreads}, StreamOf(args), launch,
                           args.operands[0], args.operands[1], bias, args.results[0]);
  });
}

absl::StatusOr<KernelFn> MakeDepthwiseInputGrad(const KernelSpec& spec, Device& device) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2, 1));
  ORIEL_ASSIGN_OR_RETURN(const ConvShape s, ConvShape::Make(spec, spec.results[0], spec.operands[1],
                                                            spec.operands[0]));
  ORIEL_ASSIGN_OR_RETURN(const DepthwiseLaunch launch, LaunchOf(spec, s));
  ORIEL_ASSIGN_OR_RETURN(const Function function,
                         FindOf(spec, device, "oriel_depthwise_input_grad"));
  return KernelFn([=](const KernelArgs& args) {
    if (launch.samples * launch.channels * launch.inputs == 0) return absl::OkStatus();
    return function.Launch(GridOf(launch, launch.inputs), {kConvThreads}, StreamOf(args), launch,
                           args.operands[0], args.operands[1], args.results[0]);
  });
}

absl::StatusOr<KernelFn> MakeDepthwiseWeightGrad(const KernelSpec& spec, Device& device) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2, 1));
  ORIEL_ASSIGN_OR_RETURN(const ConvShape s, ConvShape::Make(spec, spec.operands[1], spec.results[0],
                                                            spec.operands[0]));
  ORIEL_ASSIGN_OR_RETURN(const DepthwiseLaunch launch, LaunchOf(spec, s));
  ORIEL_ASSIGN_OR_RETURN(const Function function,
                         FindOf(spec, device, "oriel_depthwise_weight_grad"));
  const Grid blocks = BlocksFor(device, launch.channels, 1);
  return KernelFn([=](const KernelArgs& args) {
    if (launch.channels * launch.taps == 0) return absl::OkStatus();
    return function.Launch(blocks, {kConvThreads}, StreamOf(args), launch, args.operands[0],
                           args.operands[1], args.results[0]);
  });
}

ORIEL_REGISTER_CUDA_KERNEL("conv", 20, MakeDepthwise);
ORIEL_REGISTER_CUDA_KERNEL("conv_input_grad", 20, MakeDepthwiseInputGrad);
ORIEL_REGISTER_CUDA_KERNEL("conv_weight_grad", 20, MakeDepthwiseWeightGrad);

}  // namespace
}  // namespace oriel::kernels::cuda
