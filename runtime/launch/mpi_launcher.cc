#include "runtime/launch/mpi_launcher.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/launch/mpirun_process.h"
#include "runtime/launch/rank_link.h"
#include "runtime/launch/rank_monitor.h"
#include "runtime/launch/stop_signal.h"
#include "runtime/train/checkpoint_reader.h"

namespace oriel::runtime {
namespace {

using Clock = std::chrono::steady_clock;

// mpirun ends a job with a dead rank by itself, and says by which signal it died. If it has
// not done so after this time, everything is killed.
constexpr std::chrono::seconds kPatience(4);

class Launch {
 public:
  Launch(MpirunProcess process, RankMonitor monitor, const RunOptions& options)
      : process_(std::move(process)), monitor_(std::move(monitor)), options_(options) {}

  int Run();

 private:
  void Wait();
  void ForwardStderr();
  void HandleStopRequests();
  void EndFailedJob();
  void KillAll();
  int Finish(int mpirun_status);
  int KillingSignal() const;
  std::string DescribeKill(const RankMonitor::Failure& failure) const;

  MpirunProcess process_;
  RankMonitor monitor_;
  const RunOptions& options_;
  std::string withheld_;  // what mpirun says about a failure that we explain ourselves
  int stops_passed_on_ = 0;
  std::optional<Clock::time_point> failed_at_;
};

int Launch::Run() {
  while (true) {
    Wait();
    monitor_.Update();
    if (monitor_.failure() && !failed_at_) failed_at_ = Clock::now();
    ForwardStderr();
    HandleStopRequests();
    EndFailedJob();
    if (std::optional<int> status = process_.Poll()) {
      monitor_.Update();
      ForwardStderr();
      return Finish(*status);
    }
  }
}

void Launch::Wait() {
  std::vector<pollfd> targets;
  monitor_.AddPollTargets(targets);
  targets.push_back({process_.stderr_fd(), POLLIN, 0});
  // The timeout is for mpirun's end, which wakes nobody, and for signals between two calls.
  poll(targets.data(), targets.size(), 100);
  // At the end of its stderr a poll returns at once until mpirun itself is gone.
  if (targets.back().revents == POLLHUP) usleep(20'000);
}

void Launch::ForwardStderr() {
  char buffer[4096];
  while (true) {
    const ssize_t got = read(process_.stderr_fd(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    if (failed_at_) {
      withheld_.append(buffer, got);
    } else {
      std::fwrite(buffer, 1, got, stderr);
      std::fflush(stderr);
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
    process_.Signal(SIGTERM);  // no rank has started: nothing is lost
    stops_passed_on_ = requests;
  }
}

void Launch::EndFailedJob() {
  if (failed_at_ && Clock::now() - *failed_at_ > kPatience) KillAll();
}

void Launch::KillAll() {
  for (pid_t pid : monitor_.running()) kill(pid, SIGKILL);
  process_.Signal(SIGKILL);
}

// 0 if mpirun has not said it.
int Launch::KillingSignal() const {
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
std::string Launch::DescribeKill(const RankMonitor::Failure& failure) const {
  std::string text = absl::StrCat("rank ", failure.rank, " (pid ", failure.pid, ") ");
  if (const int signal = KillingSignal(); signal > 0) {
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

int Launch::Finish(int mpirun_status) {
  if (StopRequests() > 1) return kExitInterrupted;
  if (std::optional<RankMonitor::Failure> failure = monitor_.failure()) {
    const std::string text =
        failure->error ? absl::StrCat(absl::StrContains(failure->error->message(), "rank ")
                                          ? ""
                                          : absl::StrCat("rank ", failure->rank, ": "),
                                      std::string(failure->error->message()))
                       : DescribeKill(*failure);
    // Who dies of a fault of its own may have said why.
    if (!failure->error && KillingSignal() != SIGKILL) std::fputs(withheld_.c_str(), stderr);
    std::fprintf(stderr, "oriel-run: error: %s\n", text.c_str());
    return kExitError;
  }
  if (monitor_.exit_status() && mpirun_status == 0) return *monitor_.exit_status();
  if (StopRequests() > 0 && !monitor_.any_started()) return kExitInterrupted;
  std::fprintf(stderr, "oriel-run: error: mpirun ended with status %d%s\n", mpirun_status,
               monitor_.any_started() ? "" : " before any rank had started");
  return kExitError;
}

// The path of this program.
std::string Executable() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  return length > 0 ? std::string(path, length) : "oriel-run";
}

}  // namespace

int LaunchMpi(int64_t ranks, const std::vector<std::string>& arguments, const RunOptions& options) {
  absl::StatusOr<RankMonitor> monitor = RankMonitor::Listen();
  if (!monitor.ok()) {
    std::fprintf(stderr, "oriel-run: error: %s\n", std::string(monitor.status().message()).c_str());
    return kExitError;
  }
  std::map<std::string, std::string> environment = LocalMpiEnvironment();
  environment[kLauncherSocketVariable] = monitor->socket_name();
  environment[kTerminalVariable] = isatty(STDERR_FILENO) ? "1" : "0";
  std::vector<std::string> command = {"-n", absl::StrCat(ranks), Executable()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  InstallStopHandlers(StopHandling::kLauncher);
  absl::StatusOr<MpirunProcess> process = MpirunProcess::Start(command, environment);
  if (!process.ok()) {
    std::fprintf(stderr, "oriel-run: error: %s\n", std::string(process.status().message()).c_str());
    return kExitError;
  }
  return Launch(*std::move(process), *std::move(monitor), options).Run();
}

}  // namespace oriel::runtime
