// Launches of dropout.cu.
#include <algorithm>

#include "kernels/cuda/factory.h"
#include "kernels/cuda/registry.h"
#include "kernels/random/dropout.h"
#include "runtime/base/status.h"

namespace oriel::kernels::cuda {
namespace {

constexpr int kThreads = 256;

absl::StatusOr<KernelFn> MakeDropout(const KernelSpec& spec, Device& device) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2, 2 + DropoutArgs::kDims, 1));
  ORIEL_ASSIGN_OR_RETURN(const DropoutArgs args, DropoutOf(spec));
  const bool packs = args.inner % 4 == 0;
  ORIEL_ASSIGN_OR_RETURN(const Function function,
                         FindTyped(spec, device, packs ? "oriel_dropout_4" : "oriel_dropout_1",
                                   {spec.operands[0].dtype}));
  const int64_t each = args.runs * args.inner;
  Grid blocks = BlocksFor(device, each / (packs ? 4 : 1), kThreads);
  blocks.y = static_cast<unsigned>(std::min<int64_t>(args.samples, 65535));
  return KernelFn([=](const KernelArgs& launch) -> absl::Status {
    if (each == 0) return absl::OkStatus();
    DropoutFirsts firsts;
    for (int c = 0; c < args.cuts; ++c) firsts.at[c] = launch.operand<int64_t>(2 + c);
    return function.Launch(blocks, {kThreads}, StreamOf(launch), args, firsts, launch.operands[0],
                           launch.operands[1], launch.results[0]);
  });
}

ORIEL_REGISTER_CUDA_KERNEL("dropout", 0, MakeDropout);

}  // namespace
}  // namespace oriel::kernels::cuda
