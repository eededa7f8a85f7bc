#include "runtime/launch/rank_process.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/launch/device.h"
#include "runtime/launch/job.h"
#include "runtime/launch/rank_link.h"
#include "runtime/launch/same_job.h"
#include "runtime/plan/rank_processes.h"

namespace oriel::runtime {
namespace {

// Of all ranks' errors in preparing, the lowest rank's is kept; on the others Aborted. So a
// mistake that all ranks see is told once.
absl::Status AgreeOnError(const absl::Status& mine, Communicator& world) {
  int64_t lowest = mine.ok() ? 0 : world.size() - world.rank();
  const ReduceBuffer buffer{&lowest, &lowest, 1, DType::kI64};
  const absl::Status agreed = world.AllReduce(Reduction::kMax, absl::MakeConstSpan(&buffer, 1));
  // A rank that has agreed already may have ended the job since: rather told twice than not at all.
  if (!agreed.ok()) return mine.ok() ? agreed : mine;
  if (lowest == 0) return absl::OkStatus();
  const int64_t failed = world.size() - lowest;
  return failed == world.rank()
             ? mine
             : absl::AbortedError(absl::StrCat("rank ", failed, " could not start"));
}

}  // namespace

absl::StatusOr<bool> RunRankProcess(const RunOptions& options, const RankProcess& process) {
  Communicator& world = *process.world;  // of processes
  absl::StatusOr<Job> job = PrepareJob(options);
  absl::Status prepared = job.status();
  if (prepared.ok()) {
    prepared = CheckWorld(job->plan, options.plan, world.size(), process.starter);
    if (prepared.ok() && options.ranks && *options.ranks != world.size()) {
      prepared =
          absl::InvalidArgumentError(absl::StrCat("-n ", *options.ranks, ", but ", process.starter,
                                                  " has started ", world.size(), " ranks"));
    }
  }
  ORIEL_RETURN_IF_ERROR(AgreeOnError(prepared, world));
  ORIEL_RETURN_IF_ERROR(AgreeOnError(CheckSameJob(*job, world), world));
  const char* terminal = std::getenv(kTerminalVariable);
  RankOptions rank_options;
  rank_options.terminal =
      (terminal != nullptr && std::strcmp(terminal, "1") == 0) || isatty(STDERR_FILENO) != 0;
  rank_options.threads = ThreadsPerRank(options, process.local_ranks.value_or(world.size()));
  rank_options.local_rank = process.local_rank ? *process.local_rank : LocalRank(world.rank());
  rank_options.on_error = process.on_error;
  std::unique_ptr<Communicator> renumbered;
  if (!AreRanksProcesses(job->plan)) {
    ORIEL_ASSIGN_OR_RETURN(renumbered, world.Renumber(ProcessesOfRanks(job->plan)));
    if (process.on_rank) process.on_rank(renumbered->rank());
  }
  Communicator& ranks = renumbered ? *renumbered : world;
  return RunRank(*job, ranks.rank(), ranks.size() == 1 ? nullptr : &ranks, rank_options);
}

}  // namespace oriel::runtime
