// Which kernels and collectives take the time.
#ifndef ORIEL_RUNTIME_TRAIN_KERNEL_PROFILE_H_
#define ORIEL_RUNTIME_TRAIN_KERNEL_PROFILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "runtime/exec/executor.h"

namespace oriel::runtime {

// Two tables over all steps of an executor that measures (ExecutorOptions::profile), evaluations
// left out: kernels by total time, and the slowest instructions with where they come from.
absl::StatusOr<std::string> ReportKernels(const Executor& executor);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_TRAIN_KERNEL_PROFILE_H_
