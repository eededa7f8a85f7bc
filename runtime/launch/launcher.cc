#include "runtime/launch/launcher.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/executable.h"
#include "runtime/comm/tcp/sockets.h"
#include "runtime/launch/child_process.h"
#include "runtime/launch/rank_link.h"
#include "runtime/launch/rank_monitor.h"
#include "runtime/launch/stop_signal.h"
#include "runtime/train/checkpoint/checkpoint_reader.h"

namespace oriel::runtime {
namespace {

using Clock = std::chrono::steady_clock;

// A job with a dead rank ends by itself: mpirun sees to that, and ranks that are connected. If it
// has not done so after this time, everything is killed.
constexpr std::chrono::seconds kPatience(4);

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "oriel-run: error: %s\n", std::string(status.message()).c_str());
  return kExitError;
}

class Launch {
 public:
  // `under_mpirun`: there is one process, mpirun, and it says on stderr how ranks die.
  Launch(std::vector<ChildProcess> processes, bool under_mpirun, RankMonitor monitor,
         const RunOptions& options)
      : processes_(std::move(processes)),
        under_mpirun_(under_mpirun),
        monitor_(std::move(monitor)),
        options_(options) {}

  int Run();

 private:
  void FindFailure();
  void Wait();
  void ForwardStderr();
  void HandleStopRequests();
  void EndFailedJob();
  void KillAll();
  // The first status but 0, once all have ended.
  std::optional<int> PollAll();
  int Finish(int status);
  int KillingSignal(pid_t pid);
  std::string DescribeKill(const RankMonitor::Failure& failure);

  std::vector<ChildProcess> processes_;
  const bool under_mpirun_;
  RankMonitor monitor_;
  const RunOptions& options_;
  std::string withheld_;  // what is said about a failure that we explain ourselves
  std::string mute_;      // why the job fails, if the process did not say it
  std::optional<RankMonitor::Failure> failure_;  // that was known when all were killed
  int stops_passed_on_ = 0;
  std::optional<Clock::time_point> failed_at_;
};

int Launch::Run() {
  while (true) {
    Wait();
    monitor_.Update();
    if (!failed_at_) FindFailure();
    ForwardStderr();
    HandleStopRequests();
    EndFailedJob();
    if (const std::optional<int> status = PollAll()) {
      monitor_.Update();
      ForwardStderr();
      return Finish(*status);
    }
  }
}

// A process that ends without having told us why is the reason, too.
void Launch::FindFailure() {
  if (monitor_.failure()) {
    failed_at_ = Clock::now();
    return;
  }
  if (under_mpirun_) return;
  for (size_t rank = 0; rank < processes_.size(); ++rank) {
    const int status = processes_[rank].Poll().value_or(0);
    if (status == 0) continue;
    monitor_.Update();  // what it said at its end may have come since
    const bool told = monitor_.failure().has_value();
    // Who has done its work and falls while it leaves does not stop the others.
    if (!told && monitor_.HeardOf(processes_[rank].pid()) != RankMonitor::Heard::kNothing) continue;
    failed_at_ = Clock::now();
    if (!told) {
      mute_ = absl::StrCat("the process of rank ", rank, " ended with status ", status,
                           " before it had started");
    }
    return;
  }
}

void Launch::Wait() {
  std::vector<pollfd> targets;
  monitor_.AddPollTargets(targets);
  const size_t links = targets.size();
  for (ChildProcess& process : processes_) {
    if (!process.Poll()) targets.push_back({process.stderr_fd(), POLLIN, 0});
  }
  // The timeout is for a process' end, which wakes nobody, and for signals between two calls.
  poll(targets.data(), targets.size(), 100);
  // At the end of its stderr a poll returns at once until the process itself is gone.
  for (size_t i = links; i < targets.size(); ++i) {
    if (targets[i].revents != POLLHUP) continue;
    usleep(20'000);
    return;
  }
}

std::optional<int> Launch::PollAll() {
  int first = 0;
  for (ChildProcess& process : processes_) {
    const std::optional<int> status = process.Poll();
    if (!status) return std::nullopt;
    if (first == 0) first = *status;
  }
  return first;
}

void Launch::ForwardStderr() {
  char buffer[4096];
  for (const ChildProcess& process : processes_) {
    while (true) {
      const ssize_t got = read(process.stderr_fd(), buffer, sizeof buffer);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      if (failed_at_) {
        withheld_.append(buffer, got);
      } else {
        std::fwrite(buffer, 1, got, stderr);
        std::fflush(stderr);
      }
    }
  }
}

void Launch::HandleStopRequests() {
  const int requests = StopRequests();
  if (requests > 1) {
    KillAll();
  } else if (requests > stops_passed_on_ && monitor_.any_started()) {
    // To the ranks, not to mpirun, which would kill them a second later.
    for (pid_t pid : monitor_.running()) kill(pid, SIGINT);
    stops_passed_on_ = requests;
  } else if (requests > stops_passed_on_) {
    // No rank has started: nothing is lost.
    for (const ChildProcess& process : processes_) process.Signal(SIGTERM);
    stops_passed_on_ = requests;
  }
}

void Launch::EndFailedJob() {
  if (!failed_at_ || Clock::now() - *failed_at_ <= kPatience) return;
  // Who is killed now is not the reason.
  if (!failure_) failure_ = monitor_.failure();
  KillAll();
}

void Launch::KillAll() {
  for (pid_t pid : monitor_.running()) kill(pid, SIGKILL);
  for (const ChildProcess& process : processes_) process.Signal(SIGKILL);
}

// 0 if it is not known.
int Launch::KillingSignal(pid_t pid) {
  if (!under_mpirun_) {
    for (ChildProcess& process : processes_) {
      const int status = process.Poll().value_or(0);
      if (process.pid() == pid) return status > 128 ? status - 128 : 0;
    }
    return 0;
  }
  // "mpirun noticed that process rank 2 with PID 123 on node x exited on signal 9 (Killed)."
  constexpr char kSignal[] = "exited on signal ";
  const size_t place = withheld_.find(kSignal);
  if (place == std::string::npos) return 0;
  const size_t begin = place + sizeof kSignal - 1;
  const size_t end = withheld_.find_first_not_of("0123456789", begin);
  int signal = 0;
  return absl::SimpleAtoi(withheld_.substr(begin, end - begin), &signal) ? signal : 0;
}

// "rank 2 (pid 123) was killed by signal 9; resume with --resume DIR"
std::string Launch::DescribeKill(const RankMonitor::Failure& failure) {
  std::string text = absl::StrCat("rank ", failure.rank, " (pid ", failure.pid, ") ");
  if (const int signal = KillingSignal(failure.pid); signal > 0) {
    absl::StrAppend(&text, "was killed by signal ", signal);
  } else {
    text += "died";
  }
  const std::string& folder = options_.save_dir.empty() ? options_.resume : options_.save_dir;
  if (folder.empty()) {
    text += "; no checkpoint was being written (--save-dir)";
  } else if (FindCheckpoint(folder).ok()) {
    absl::StrAppend(&text, "; resume with --resume ", folder);
  } else {
    absl::StrAppend(&text, "; no checkpoint is in ", folder, " yet");
  }
  return text;
}

int Launch::Finish(int status) {
  if (StopRequests() > 1) return kExitInterrupted;
  const std::optional<RankMonitor::Failure> failure = failure_ ? failure_ : monitor_.failure();
  if (failure && mute_.empty()) {
    const std::string text =
        failure->error ? absl::StrCat(absl::StrContains(failure->error->message(), "rank ")
                                          ? ""
                                          : absl::StrCat("rank ", failure->rank, ": "),
                                      std::string(failure->error->message()))
                       : DescribeKill(*failure);
    // Who dies of a fault of its own may have said why.
    if (!failure->error && KillingSignal(failure->pid) != SIGKILL) {
      std::fputs(withheld_.c_str(), stderr);
    }
    std::fprintf(stderr, "oriel-run: error: %s\n", text.c_str());
    return kExitError;
  }
  if (monitor_.exit_status() && status == 0) return *monitor_.exit_status();
  if (StopRequests() > 0 && !monitor_.any_started()) return kExitInterrupted;
  // Who ends without a word to us may have said something on stderr.
  std::fputs(withheld_.c_str(), stderr);
  return Fail(absl::InternalError(
      !mute_.empty()
          ? mute_
          : absl::StrCat(under_mpirun_ ? "mpirun" : "a rank's process", " ended with status ",
                         status, monitor_.any_started() ? "" : " before any rank had started")));
}

// Settings for ranks that share one machine, for Open MPI 4 and 5: run as root in a container,
// more ranks than cores, no pinning. Nothing that the user has set is changed.
std::map<std::string, std::string> LocalMpiEnvironment() {
  std::map<std::string, std::string> environment = {
      {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
      {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
      {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
      {"OMPI_MCA_hwloc_base_binding_policy", "none"},
      // Copying between processes needs ptrace rights that containers don't give.
      {"OMPI_MCA_btl_vader_single_copy_mechanism", "none"},
      // Ranks that wait sleep; yielding in every look at MPI costs those that compute.
      {"OMPI_MCA_mpi_yield_when_idle", "0"},
      {"PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"},
      {"PRTE_MCA_hwloc_default_binding_policy", "none"},
  };
  for (auto it = environment.begin(); it != environment.end();) {
    it = std::getenv(it->first.c_str()) != nullptr ? environment.erase(it) : std::next(it);
  }
  return environment;
}

// What ranks need to report to us.
std::map<std::string, std::string> LinkEnvironment(const RankMonitor& monitor) {
  return {{kLauncherSocketVariable, monitor.socket_name()},
          {kTerminalVariable, isatty(STDERR_FILENO) ? "1" : "0"}};
}

}  // namespace

int LaunchMpi(int64_t ranks, const std::vector<std::string>& arguments, const RunOptions& options) {
  absl::StatusOr<RankMonitor> monitor = RankMonitor::Listen();
  if (!monitor.ok()) return Fail(monitor.status());
  std::map<std::string, std::string> environment = LocalMpiEnvironment();
  environment.merge(LinkEnvironment(*monitor));
  std::vector<std::string> command = {"mpirun", "-n", absl::StrCat(ranks),
                                      ExecutablePath().value_or("oriel-run")};
  command.insert(command.end(), arguments.begin(), arguments.end());
  InstallStopHandlers(StopHandling::kLauncher);
  absl::StatusOr<ChildProcess> process = ChildProcess::Start(command, environment);
  if (!process.ok()) {
    return Fail(absl::NotFoundError(absl::StrCat(
        process.status().message(), "; install Open MPI (openmpi-bin), or use --comm in_process")));
  }
  std::vector<ChildProcess> processes;
  processes.push_back(*std::move(process));
  return Launch(std::move(processes), /*under_mpirun=*/true, *std::move(monitor), options).Run();
}

int LaunchProcesses(int64_t ranks, const std::vector<std::string>& arguments,
                    const RunOptions& options) {
  absl::StatusOr<RankMonitor> monitor = RankMonitor::Listen();
  if (!monitor.ok()) return Fail(monitor.status());
  const absl::StatusOr<int> port = FindFreePort();
  if (!port.ok()) return Fail(port.status());
  std::vector<std::string> command = {ExecutablePath().value_or("oriel-run")};
  command.insert(command.end(), arguments.begin(), arguments.end());
  InstallStopHandlers(StopHandling::kLauncher);
  std::vector<ChildProcess> processes;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    std::map<std::string, std::string> environment = LinkEnvironment(*monitor);
    environment[kLauncherCommVariable] = "tcp";
    environment["MASTER_ADDR"] = "127.0.0.1";
    // Who else comes to the port is of another job; and what would move it is ours to say.
    environment["TORCHELASTIC_RUN_ID"] = monitor->socket_name();
    environment["TORCHELASTIC_RESTART_COUNT"] = environment["TORCHELASTIC_USE_AGENT_STORE"] = "";
    environment["ORIEL_MASTER_PORT"] = "";
    environment["MASTER_PORT"] = absl::StrCat(*port);
    environment["RANK"] = environment["LOCAL_RANK"] = absl::StrCat(rank);
    environment["WORLD_SIZE"] = environment["LOCAL_WORLD_SIZE"] = absl::StrCat(ranks);
    absl::StatusOr<ChildProcess> process = ChildProcess::Start(command, environment);
    if (!process.ok()) return Fail(process.status());
    processes.push_back(*std::move(process));
  }
  return Launch(std::move(processes), /*under_mpirun=*/false, *std::move(monitor), options).Run();
}

}  // namespace oriel::runtime
