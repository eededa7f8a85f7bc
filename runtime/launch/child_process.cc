#include "runtime/launch/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace oriel::runtime {
namespace {

// Between fork and exec. Never returns.
[[noreturn]] void Exec(char* const* argv, const std::map<std::string, std::string>& environment,
                       int stderr_fd, int error_fd, pid_t parent) {
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);  // it died before the line above
  const int null = open("/dev/null", O_RDONLY);
  if (null >= 0) dup2(null, STDIN_FILENO);
  dup2(stderr_fd, STDERR_FILENO);
  execvp(argv[0], argv);
  const int error = errno;
  ssize_t ignored = write(error_fd, &error, sizeof error);
  (void)ignored;
  _exit(127);
}

}  // namespace

absl::StatusOr<ChildProcess> ChildProcess::Start(
    const std::vector<std::string>& command,
    const std::map<std::string, std::string>& environment) {
  std::vector<std::string> words = command;
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int output[2], error[2];  // error: closes by itself when exec succeeds
  if (pipe2(output, O_CLOEXEC) != 0 || pipe2(error, O_CLOEXEC) != 0) {
    return absl::InternalError(absl::StrCat("pipe: ", strerror(errno)));
  }
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return absl::InternalError(absl::StrCat("fork: ", strerror(errno)));
  if (pid == 0) Exec(argv.data(), environment, output[1], error[1], parent);
  close(output[1]);
  close(error[1]);
  int code = 0;
  ssize_t got;
  do {
    got = read(error[0], &code, sizeof code);
  } while (got < 0 && errno == EINTR);
  close(error[0]);
  fcntl(output[0], F_SETFL, O_NONBLOCK);
  ChildProcess process(pid, output[0]);
  if (got == sizeof code) {
    return absl::NotFoundError(absl::StrCat("cannot start ", command[0], ": ", strerror(code)));
  }
  return process;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      stderr_fd_(std::exchange(other.stderr_fd_, -1)),
      exit_status_(other.exit_status_) {}

ChildProcess::~ChildProcess() {
  if (stderr_fd_ >= 0) close(stderr_fd_);
  if (pid_ < 0 || exit_status_) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

std::optional<int> ChildProcess::Poll() {
  int status = 0;
  if (!exit_status_ && waitpid(pid_, &status, WNOHANG) == pid_) {
    exit_status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return exit_status_;
}

void ChildProcess::Signal(int signal) const {
  if (pid_ > 0 && !exit_status_) kill(pid_, signal);
}

}  // namespace oriel::runtime
