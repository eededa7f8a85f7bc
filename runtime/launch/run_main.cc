#include "runtime/launch/run_main.h"

#include <unistd.h>

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/comm/tcp/environment.h"
#include "runtime/doctor/doctor.h"
#include "runtime/launch/in_process.h"
#include "runtime/launch/job.h"
#include "runtime/launch/launcher.h"
#include "runtime/launch/mpi_rank.h"
#include "runtime/launch/options.h"
#include "runtime/launch/rank_link.h"
#include "runtime/launch/run_measure.h"
#include "runtime/launch/stop_signal.h"
#include "runtime/launch/tcp_rank.h"
#include "runtime/plan/device.h"
#include "runtime/plan/rank_processes.h"

namespace oriel::runtime {
namespace {

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "oriel-run: error: %s\n", std::string(status.message()).c_str());
  return kExitError;
}

int RunThreads(const Job& job) {
  InstallStopHandlers(StopHandling::kInteractive);
  const int64_t ranks = job.plan.world_size();
  RankOptions rank_options;
  rank_options.threads = ThreadsPerRank(job.options, ranks);
  rank_options.terminal = isatty(STDERR_FILENO) != 0;
  absl::StatusOr<bool> interrupted = RunInProcess(ranks, [&](int64_t rank, Communicator* world) {
    RankOptions options = rank_options;
    options.local_rank = ProcessOfRank(job.plan, rank);  // of devices, as of processes
    options.on_error = [rank, world](const absl::Status& error) {
      if (world != nullptr) world->Abort(WithRank(error, rank));
    };
    return RunRank(job, rank, world, options);
  });
  if (!interrupted.ok()) return Fail(interrupted.status());
  return *interrupted ? kExitInterrupted : kExitOk;
}

int RunDoctor(const RunOptions& options) {
  const std::vector<Finding> findings = Examine();
  std::fputs(DoctorText(findings).c_str(), stdout);
  const std::vector<Finding> missing = Missing(findings, {options.device, options.comm});
  std::vector<std::string> names;
  for (const Finding& finding : missing) names.push_back(finding.name);
  if (missing.empty()) return kExitOk;
  return Fail(absl::FailedPreconditionError(
      absl::StrCat("what was asked for can't run here without: ", absl::StrJoin(names, ", "))));
}

}  // namespace

int RunMain(int argc, const char* const* argv) {
  ParsedOptions parsed = ParseOptions(argc, argv);
  if (!parsed.options) return parsed.exit_code;
  const RunOptions& options = *parsed.options;
  if (options.doctor) return RunDoctor(options);
  if (options.measure) {
    const absl::StatusOr<std::string> text = RunMeasure(options);
    if (!text.ok()) return Fail(text.status());
    std::fputs(text->c_str(), stdout);
    return kExitOk;
  }
  const std::optional<int64_t> mpi_world = MpiWorldSize();
  const bool is_rank = HasLaunchEnvironment(EnvironmentVariable);
  // torchrun may itself be started by mpirun, whose variables are then around. Those of srun say
  // nothing: it starts ranks of MPI and others.
  const bool by_torchrun = is_rank && EnvironmentVariable("TORCHELASTIC_RUN_ID") != nullptr;
  const char* launcher = EnvironmentVariable(kLauncherCommVariable);
  const bool by_launcher = launcher != nullptr && std::string(launcher) == "tcp";
  const bool tcp_is_default =
      options.comm.empty() && (by_torchrun || (is_rank && !IsStartedByMpirun()));
  if (by_launcher || options.comm == "tcp" || tcp_is_default) return RunTcpRank(options);
  const bool starts_all = options.comm == "in_process" || options.comm == "processes";
  if (mpi_world && !starts_all) return RunMpiRank(options);
  if (starts_all && is_rank && std::string(EnvironmentVariable(kWorldSizeVariable)) != "1") {
    return Fail(absl::InvalidArgumentError(absl::StrCat(
        "RANK and WORLD_SIZE are set: this process is one rank of several, but --comm ",
        options.comm, " starts all ranks; leave out one of the two")));
  }
  if (mpi_world.value_or(1) > 1) {
    return Fail(absl::InvalidArgumentError(
        absl::StrCat("mpirun has started ", *mpi_world, " processes, but --comm ", options.comm,
                     " starts all ranks; leave out one of the two")));
  }
  // Also before mpirun: a mistake is told once, and at once.
  absl::StatusOr<Job> job = PrepareJob(options);
  if (!job.ok()) return Fail(job.status());
  if (options.comm.empty() && job->plan.world_size() > 1) {
    absl::Status whole = CheckNoPartOfLaunchEnvironment(EnvironmentVariable);
    if (!whole.ok()) return Fail(whole);
  }
  if (options.ranks) {
    absl::Status world =
        CheckWorld(job->plan, options.plan, *options.ranks, absl::StrCat("-n ", *options.ranks));
    if (!world.ok()) return Fail(world);
  }
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (options.comm == "mpi") return LaunchMpi(job->plan.world_size(), arguments, options);
  // NCCL in CUDA graphs wants a process for each GPU: with several in one, launches may wait for
  // each other for ever.
  const bool processes_are_default = options.comm.empty() && job->plan.world_size() > 1 &&
                                     job->plan.device().kind() == kCudaDevice;
  if (options.comm == "processes" || processes_are_default) {
    return LaunchProcesses(job->plan.world_size(), arguments, options);
  }
  return RunThreads(*job);
}

}  // namespace oriel::runtime
