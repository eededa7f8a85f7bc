// Sleeping instead of computing, for studies of schedules (ExecutorOptions::replace_compute).
#ifndef ORIEL_RUNTIME_EXEC_REPLACED_COMPUTE_H_
#define ORIEL_RUNTIME_EXEC_REPLACED_COMPUTE_H_

#include "absl/status/status.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/steps.h"
#include "runtime/plan/plan.pb.h"

namespace oriel::runtime {

// InvalidArgument for a segment that the plan does not have, and for a time that is none.
absl::Status CheckReplacements(const plan::Plan& plan, const ExecutorOptions& options);

// When the segment sleeps, if its computing is replaced. Its steps are there.
void PrepareSleep(const ExecutorOptions& options, PreparedSegment& prepared);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_EXEC_REPLACED_COMPUTE_H_
