// Kernels that a plan needs, and the plugins that bring them.
#ifndef ORIEL_RUNTIME_LAUNCH_KERNEL_PLUGINS_H_
#define ORIEL_RUNTIME_LAUNCH_KERNEL_PLUGINS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/plan/plan.pb.h"

namespace oriel::runtime {

// Adds the kernels of these libraries to the host's registry; before any rank of this process
// prepares a launch.
absl::Status LoadKernelPlugins(const std::vector<std::string>& paths);

// NotFound, naming them all, if the plan launches kernels that its device lacks: on the host those
// that are not in the registry.
absl::Status CheckKernels(const plan::Plan& plan);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_LAUNCH_KERNEL_PLUGINS_H_
