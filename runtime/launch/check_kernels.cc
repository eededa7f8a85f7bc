#include "runtime/launch/check_kernels.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/kernel.h"
#include "runtime/plan/device.h"

namespace oriel::runtime {

absl::Status CheckKernels(const plan::Plan& plan) {
  const bool on_host = DeviceKind(plan) == kHostDevice;
  std::set<std::string> known(CudaKernels().begin(), CudaKernels().end());
  if (on_host) {
    const std::vector<std::string> names = kernels::KernelRegistry::Host().Names();
    known = {names.begin(), names.end()};
  }
  std::set<std::string> missing;
  for (const plan::Program& program : plan.programs()) {
    for (const plan::Segment& segment : program.segments()) {
      for (const plan::Instruction& instruction : segment.instructions()) {
        if (!instruction.has_launch()) continue;
        const std::string& kernel = instruction.launch().kernel();
        if (known.count(kernel) == 0) missing.insert(kernel);
      }
    }
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat(
      "the plan needs the kernel", missing.size() > 1 ? "s " : " ", absl::StrJoin(missing, ", "),
      ", which this oriel-run lacks",
      on_host ? absl::StrCat("; give the plugin that has ", missing.size() > 1 ? "them" : "it",
                             ": --load-plugin FILE.so")
              : " for CUDA; compile the plan with the oriel of this very version"));
}

}  // namespace oriel::runtime
