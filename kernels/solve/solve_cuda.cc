// Launches of solve.cu.
#include "kernels/cuda/factory.h"
#include "kernels/cuda/registry.h"
#include "kernels/solve/solve.h"
#include "runtime/base/status.h"

namespace oriel::kernels::cuda {
namespace {

absl::StatusOr<KernelFn> MakeTriangularSolve(const KernelSpec& spec, Device& device) {
  ORIEL_ASSIGN_OR_RETURN(const TriangularSystems s, SystemsOf(spec));
  ORIEL_ASSIGN_OR_RETURN(const Function function, FindTyped(spec, device, "oriel_triangular_solve",
                                                            {spec.operands[0].dtype}));
  const int64_t tiles = (s.m + kSolveThreads - 1) / kSolveThreads;
  const Grid blocks = BlocksFor(device, s.systems * tiles, 1);
  return KernelFn([=](const KernelArgs& args) {
    if (s.systems * s.n * s.m == 0) return absl::OkStatus();
    return function.Launch(blocks, {kSolveThreads}, StreamOf(args), s, args.operands[0],
                           args.operands[1], args.results[0]);
  });
}

ORIEL_REGISTER_CUDA_KERNEL("triangular_solve", 0, MakeTriangularSolve);

}  // namespace
}  // namespace oriel::kernels::cuda
