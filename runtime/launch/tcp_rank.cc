#include "runtime/launch/tcp_rank.h"

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/comm/tcp/environment.h"
#include "runtime/comm/tcp/tcp.h"
#include "runtime/launch/in_process.h"
#include "runtime/launch/rank_link.h"
#include "runtime/launch/rank_process.h"
#include "runtime/launch/stop_signal.h"

namespace oriel::runtime {
namespace {

// Tells the launcher, or, without one, stderr.
int Fail(const absl::Status& status, RankLink& link) {
  link.Error(status);
  if (!link.connected()) {
    std::fprintf(stderr, "oriel-run: error: %s\n", std::string(status.message()).c_str());
  }
  return kExitError;
}

}  // namespace

int RunTcpRank(const RunOptions& options) {
  RankLink link;
  absl::StatusOr<LaunchEnvironment> environment = ReadLaunchEnvironment(EnvironmentVariable);
  if (!environment.ok()) return Fail(Annotate(environment.status(), "--comm tcp"), link);
  // In this order: the launcher passes a Ctrl-C on to every rank that has started.
  InstallStopHandlers(StopHandling::kRank);
  link.Start(environment->rank);
  absl::StatusOr<std::unique_ptr<Communicator>> world = OpenTcpWorld(*environment);
  if (!world.ok()) return Fail(world.status(), link);
  int64_t rank = environment->rank;
  RankProcess process;
  process.world = world->get();
  process.starter = kWorldSizeVariable;
  process.local_ranks = environment->local_world_size;
  process.local_rank = environment->local_rank;
  process.on_rank = [&](int64_t of_plan) {
    rank = of_plan;
    link.Start(rank);
  };
  // Before anything is taken down, which may take longer than the launcher waits for the reason.
  process.on_error = [&](const absl::Status& error) {
    link.Error(WithRank(error, rank));
    (*world)->Abort(WithRank(error, rank));
  };
  absl::StatusOr<bool> interrupted = RunRankProcess(options, process);
  if (!interrupted.ok()) {
    const absl::Status error = WithRank(interrupted.status(), rank);
    const int status = Fail(error, link);
    (*world)->Abort(error);
    return status;
  }
  const int status = *interrupted ? kExitInterrupted : kExitOk;
  link.Done(status);
  // The launcher takes any exit status but 0 for a failure.
  return link.connected() ? kExitOk : status;
}

}  // namespace oriel::runtime
