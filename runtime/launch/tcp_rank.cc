#include "runtime/launch/tcp_rank.h"

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/comm/tcp/environment.h"
#include "runtime/comm/tcp/tcp.h"
#include "runtime/launch/in_process.h"
#include "runtime/launch/rank_process.h"
#include "runtime/launch/stop_signal.h"

namespace oriel::runtime {
namespace {

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "oriel-run: error: %s\n", std::string(status.message()).c_str());
  return kExitError;
}

}  // namespace

int RunTcpRank(const RunOptions& options) {
  absl::StatusOr<LaunchEnvironment> environment = ReadLaunchEnvironment(EnvironmentVariable);
  if (!environment.ok()) return Fail(Annotate(environment.status(), "--comm tcp"));
  InstallStopHandlers(StopHandling::kRank);
  absl::StatusOr<std::unique_ptr<Communicator>> world = OpenTcpWorld(*environment);
  if (!world.ok()) return Fail(world.status());
  int64_t rank = environment->rank;
  RankProcess process;
  process.world = world->get();
  process.starter = "WORLD_SIZE";
  process.local_ranks = environment->local_world_size;
  process.local_rank = environment->local_rank;
  process.on_rank = [&](int64_t of_plan) { rank = of_plan; };
  process.on_error = [&](const absl::Status& error) { (*world)->Abort(WithRank(error, rank)); };
  absl::StatusOr<bool> interrupted = RunRankProcess(options, process);
  if (!interrupted.ok()) {
    const absl::Status error = WithRank(interrupted.status(), rank);
    (*world)->Abort(error);
    return Fail(error);
  }
  return *interrupted ? kExitInterrupted : kExitOk;
}

}  // namespace oriel::runtime
