// What a rank does that is a process of its own, whoever has started it.
#ifndef ORIEL_RUNTIME_LAUNCH_RANK_PROCESS_H_
#define ORIEL_RUNTIME_LAUNCH_RANK_PROCESS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/comm/communicator.h"
#include "runtime/launch/options.h"

namespace oriel::runtime {

struct RankProcess {
  Communicator* world = nullptr;
  std::string starter;                 // who says how many ranks there are: "mpirun"
  std::optional<int64_t> local_ranks;  // of this machine; default: all
  std::optional<int64_t> local_rank;   // RankOptions::local_rank
  // Gets the plan's number of this rank, where that is not the world's.
  std::function<void(int64_t rank)> on_rank;
  std::function<void(const absl::Status&)> on_error;  // RankOptions::on_error
};

// Prepares the job and runs it as the plan's rank that this process is. True if interrupted. A
// mistake that several ranks see is the error of one; the others get Aborted.
absl::StatusOr<bool> RunRankProcess(const RunOptions& options, const RankProcess& process);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_LAUNCH_RANK_PROCESS_H_
