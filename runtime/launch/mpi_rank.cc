#include "runtime/launch/mpi_rank.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/comm/factory.h"
#include "runtime/launch/job.h"
#include "runtime/launch/rank_link.h"
#include "runtime/launch/stop_signal.h"

namespace oriel::runtime {
namespace {

std::optional<int64_t> EnvironmentNumber(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* text = std::getenv(name);
    int64_t value = 0;
    if (text != nullptr && absl::SimpleAtoi(text, &value) && value > 0) return value;
  }
  return std::nullopt;
}

// Of all ranks' errors in preparing, the lowest rank's is kept; on the others Aborted. So a
// mistake that all ranks see is told once.
absl::Status AgreeOnError(const absl::Status& mine, Communicator& world) {
  int64_t lowest = mine.ok() ? 0 : world.size() - world.rank();
  const ReduceBuffer buffer{&lowest, &lowest, 1, DType::kI64};
  ORIEL_RETURN_IF_ERROR(world.AllReduce(Reduction::kMax, absl::MakeConstSpan(&buffer, 1)));
  if (lowest == 0) return absl::OkStatus();
  const int64_t failed = world.size() - lowest;
  return failed == world.rank()
             ? mine
             : absl::AbortedError(absl::StrCat("rank ", failed, " could not start"));
}

// Tells the launcher and the other ranks. May end the process.
void EndJob(const absl::Status& error, RankLink& link, Communicator& world) {
  link.Error(error);
  if (absl::IsAborted(error)) {
    // The echo of a peer's error. Give the peer the time to say what it was.
    std::this_thread::sleep_for(std::chrono::seconds(5));
  }
  world.Abort(error);
}

absl::StatusOr<bool> RunWithWorld(const RunOptions& options, RankLink& link, Communicator& world) {
  absl::StatusOr<Job> job = PrepareJob(options);
  absl::Status prepared = job.status();
  if (prepared.ok()) {
    prepared = CheckWorld(job->plan, options.plan, world.size(), "mpirun");
    if (prepared.ok() && options.ranks && *options.ranks != world.size()) {
      prepared = absl::InvalidArgumentError(
          absl::StrCat("-n ", *options.ranks, ", but mpirun has started ", world.size(), " ranks"));
    }
  }
  ORIEL_RETURN_IF_ERROR(AgreeOnError(prepared, world));
  const char* terminal = std::getenv(kTerminalVariable);
  RankOptions rank_options;
  rank_options.terminal =
      (terminal != nullptr && std::strcmp(terminal, "1") == 0) || isatty(STDERR_FILENO) != 0;
  const std::optional<int64_t> local =
      EnvironmentNumber({"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"});
  rank_options.threads = ThreadsPerRank(options, local.value_or(world.size()));
  rank_options.on_error = [&](const absl::Status& error) { EndJob(error, link, world); };
  return RunRank(*job, world.rank(), world.size() == 1 ? nullptr : &world, rank_options);
}

}  // namespace

std::optional<int64_t> MpiWorldSize() {
  return EnvironmentNumber({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"});
}

int RunMpiRank(const RunOptions& options) {
  RankLink link;
  absl::StatusOr<std::unique_ptr<Communicator>> world = OpenMpiWorld();
  if (!world.ok()) {
    std::fprintf(stderr, "oriel-run: error: %s\n", std::string(world.status().message()).c_str());
    return kExitError;
  }
  const int64_t rank = (*world)->rank();
  // In this order: the launcher passes a Ctrl-C on to every rank that has started.
  InstallStopHandlers(StopHandling::kRank);
  link.Start(rank);
  absl::StatusOr<bool> result = RunWithWorld(options, link, **world);
  if (!result.ok()) {
    EndJob(result.status(), link, **world);
    return kExitError;
  }
  const int status = *result ? kExitInterrupted : kExitOk;
  link.Done(status);
  world->reset();  // finalises MPI
  // mpirun takes any exit status but 0 for a failure of the job; our launcher gets it by the link.
  return link.connected() ? kExitOk : status;
}

}  // namespace oriel::runtime
