// Whether ranks that are processes, perhaps on several machines, have started the same job.
#ifndef ORIEL_RUNTIME_LAUNCH_SAME_JOB_H_
#define ORIEL_RUNTIME_LAUNCH_SAME_JOB_H_

#include "absl/status/status.h"
#include "runtime/comm/communicator.h"
#include "runtime/launch/job.h"

namespace oriel::runtime {

// InvalidArgument on each rank that has another plan, data, checkpoint or option than rank 0: it
// says which. With a copy of a file that is stale on one machine, ranks would train on to wrong
// numbers, or wait for ever. Paths may differ. Weights are held against the plan as they are loaded
// (runtime/train/checkpoint/initial_weights.h).
absl::Status CheckSameJob(const Job& job, Communicator& world);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_LAUNCH_SAME_JOB_H_
