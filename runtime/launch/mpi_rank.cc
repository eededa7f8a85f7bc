#include "runtime/launch/mpi_rank.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/numbers.h"
#include "runtime/comm/factory.h"
#include "runtime/launch/rank_link.h"
#include "runtime/launch/rank_process.h"
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

// Tells the launcher and the other ranks. May end the process.
void EndJob(const absl::Status& error, RankLink& link, Communicator& world) {
  link.Error(error);
  if (absl::IsAborted(error)) {
    // The echo of a peer's error. Give the peer the time to say what it was.
    std::this_thread::sleep_for(std::chrono::seconds(5));
  }
  world.Abort(error);
}

}  // namespace

std::optional<int64_t> MpiWorldSize() {
  return EnvironmentNumber({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"});
}

bool IsStartedByMpirun() {
  if (EnvironmentNumber({"OMPI_COMM_WORLD_SIZE"})) return true;
  return EnvironmentNumber({"PMI_SIZE"}) && !EnvironmentNumber({"SLURM_STEP_NUM_TASKS"});
}

int RunMpiRank(const RunOptions& options) {
  RankLink link;
  absl::StatusOr<std::unique_ptr<Communicator>> world = OpenMpiWorld();
  if (!world.ok()) {
    std::fprintf(stderr, "oriel-run: error: %s\n", std::string(world.status().message()).c_str());
    return kExitError;
  }
  // In this order: the launcher passes a Ctrl-C on to every rank that has started.
  InstallStopHandlers(StopHandling::kRank);
  link.Start((*world)->rank());
  RankProcess process;
  process.world = world->get();
  process.starter = "mpirun";
  process.local_ranks =
      EnvironmentNumber({"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"});
  process.on_rank = [&](int64_t rank) { link.Start(rank); };
  process.on_error = [&](const absl::Status& error) { EndJob(error, link, **world); };
  absl::StatusOr<bool> result = RunRankProcess(options, process);
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
