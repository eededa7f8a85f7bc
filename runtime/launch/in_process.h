// Runs all ranks of a job as threads of this process.
#ifndef ORIEL_RUNTIME_LAUNCH_IN_PROCESS_H_
#define ORIEL_RUNTIME_LAUNCH_IN_PROCESS_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/comm/communicator.h"

namespace oriel::runtime {

// Calls `run_rank` on `ranks` threads at once, each with its communicator (null for one rank).
// The first error aborts the other ranks; it is returned, with its rank in front. True if a
// rank returned true (interrupted). InvalidArgument for more ranks than a process should have.
absl::StatusOr<bool> RunInProcess(
    int64_t ranks,
    const std::function<absl::StatusOr<bool>(int64_t rank, Communicator* world)>& run_rank);

// The error with "rank R: " in front, unless it says so already.
absl::Status WithRank(const absl::Status& status, int64_t rank);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_LAUNCH_IN_PROCESS_H_
