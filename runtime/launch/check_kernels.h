// Kernels that a plan needs.
#ifndef ORIEL_RUNTIME_LAUNCH_CHECK_KERNELS_H_
#define ORIEL_RUNTIME_LAUNCH_CHECK_KERNELS_H_

#include "absl/status/status.h"
#include "runtime/plan/plan.pb.h"

namespace oriel::runtime {

// NotFound, naming them all, if the plan launches kernels that its device lacks: on the host those
// that are not in the registry.
absl::Status CheckKernels(const plan::Plan& plan);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_LAUNCH_CHECK_KERNELS_H_
