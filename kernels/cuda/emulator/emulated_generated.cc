// Generated kernels on the emulator, which can't run PTX: it runs the host's code of the same
// linalg, as one thread of one block.
#include <array>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/emulator/emulated_kernel.h"
#include "kernels/cuda/registry.h"
#include "kernels/generated/generated.h"
#include "runtime/base/status.h"

namespace oriel::kernels::cuda {
namespace {

constexpr char kName[] = "oriel_emulated_generated";
constexpr size_t kMaxValues = 32;

// The one argument. A launch copies it.
struct Call {
  HostCode::Function function;
  int64_t units;
  std::array<const void*, kMaxValues> operands;
  std::array<void*, kMaxValues> results;
};

absl::Status Run(const EmulatedLaunch& /*launch*/, void** args) {
  const Call& call = *static_cast<const Call*>(args[0]);
  call.function(call.operands.data(), call.results.data(), 0, call.units);
  return absl::OkStatus();
}

const EmulatedKernelRegistrar registrar({kName, 1, {sizeof(Call)}, &Run});

absl::StatusOr<KernelFn> MakeEmulatedGenerated(const KernelSpec& spec, Device& device) {
  ORIEL_ASSIGN_OR_RETURN(const GeneratedUnits units, UnitsOf(spec));
  ORIEL_ASSIGN_OR_RETURN(std::shared_ptr<const HostCode> code, LoadForThisProcessor(spec));
  ORIEL_ASSIGN_OR_RETURN(const Function function, device.Find(kName));
  if (spec.operands.size() > kMaxValues || spec.results.size() > kMaxValues) {
    return absl::UnimplementedError(
        absl::StrCat("the emulator takes ", kMaxValues, " operands and results"));
  }
  return KernelFn([=, count = units.units, operands = spec.operands.size(),
                   results = spec.results.size()](const KernelArgs& args) {
    Call call{code->function(), count, {}, {}};
    std::copy_n(args.operands, operands, call.operands.begin());
    std::copy_n(args.results, results, call.results.begin());
    return function.Launch({1, 1, 1}, {1, 1, 1}, StreamOf(args), call);
  });
}

// Before that of PTX.
ORIEL_REGISTER_CUDA_KERNEL("generated", 1, MakeEmulatedGenerated);

}  // namespace
}  // namespace oriel::kernels::cuda
