// A job: what all ranks of a run share, and what each rank does.
#ifndef ORIEL_RUNTIME_LAUNCH_JOB_H_
#define ORIEL_RUNTIME_LAUNCH_JOB_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/comm/communicator.h"
#include "runtime/launch/options.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/train/checkpoint/checkpoint_reader.h"
#include "runtime/train/data/tar_shards.h"

namespace oriel::runtime {

// Immutable; ranks that are threads share it.
struct Job {
  RunOptions options;
  plan::Plan plan;
  std::string plan_folder;
  int64_t steps = 0;  // the last step
  uint64_t seed = 0;
  std::shared_ptr<const ShardIndex> train_data;  // null: no training
  std::shared_ptr<const ShardIndex> eval_data;   // null: no evaluation
  std::optional<CheckpointReader> checkpoint;    // to resume from
  std::optional<CheckpointReader> initial;       // with the weights that training begins with

  bool trains() const { return train_data != nullptr; }
};

// Loads plugins, reads and checks all that a run starts from; once in a process. Errors are for the
// user's eyes.
absl::StatusOr<Job> PrepareJob(const RunOptions& options);

// InvalidArgument if `ranks` (asked for as `how`, "-n 2") is not the plan's world.
absl::Status CheckWorld(const plan::Plan& plan, const std::string& path, int64_t ranks,
                        const std::string& how);

struct RankOptions {
  int threads = 1;
  std::optional<int64_t> local_rank;  // on this machine; else as the environment says
  bool terminal = false;              // stderr is one
  // If given: gets an error before the memory of messages on their way is freed, which MPI's peers
  // may still want. May end the process.
  std::function<void(const absl::Status&)> on_error;
};

// Trains and evaluates as one rank. True if interrupted.
absl::StatusOr<bool> RunRank(const Job& job, int64_t rank, Communicator* world,
                             const RankOptions& options);

// The threads of each of `local_ranks` on this machine, if the user didn't say.
int ThreadsPerRank(const RunOptions& options, int64_t local_ranks);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_LAUNCH_JOB_H_
