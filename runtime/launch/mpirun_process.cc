#include "runtime/launch/mpirun_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace oriel::runtime {
namespace {

constexpr char kProgram[] = "mpirun";

// Between fork and exec. Never returns.
[[noreturn]] void Exec(char* const* argv, int stderr_fd, int error_fd, pid_t parent) {
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

absl::StatusOr<MpirunProcess> MpirunProcess::Start(
    const std::vector<std::string>& arguments,
    const std::map<std::string, std::string>& environment) {
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  std::vector<std::string> words = {kProgram};
  words.insert(words.end(), arguments.begin(), arguments.end());
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
  if (pid == 0) Exec(argv.data(), output[1], error[1], parent);
  close(output[1]);
  close(error[1]);
  int code = 0;
  ssize_t got;
  do {
    got = read(error[0], &code, sizeof code);
  } while (got < 0 && errno == EINTR);
  close(error[0]);
  fcntl(output[0], F_SETFL, O_NONBLOCK);
  MpirunProcess process(pid, output[0]);
  if (got == sizeof code) {
    return absl::NotFoundError(
        absl::StrCat("cannot start ", kProgram, ": ", strerror(code),
                     "; install Open MPI (openmpi-bin), or use --comm in_process"));
  }
  return process;
}

MpirunProcess::MpirunProcess(MpirunProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      stderr_fd_(std::exchange(other.stderr_fd_, -1)),
      exit_status_(other.exit_status_) {}

MpirunProcess::~MpirunProcess() {
  if (stderr_fd_ >= 0) close(stderr_fd_);
  if (pid_ < 0 || exit_status_) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

std::optional<int> MpirunProcess::Poll() {
  int status = 0;
  if (!exit_status_ && waitpid(pid_, &status, WNOHANG) == pid_) {
    exit_status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return exit_status_;
}

void MpirunProcess::Signal(int signal) const {
  if (pid_ > 0 && !exit_status_) kill(pid_, signal);
}

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

}  // namespace oriel::runtime
