// A program as a child process: a rank, or mpirun with all of them.
#ifndef ORIEL_RUNTIME_LAUNCH_CHILD_PROCESS_H_
#define ORIEL_RUNTIME_LAUNCH_CHILD_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace oriel::runtime {

// Started in a process group of its own, so that a terminal's Ctrl-C reaches only us. Its stdout
// is ours, its stderr a pipe. When we end, it gets SIGTERM.
class ChildProcess {
 public:
  // `command` is the program, found by PATH, and its arguments; `environment` is added to ours.
  // NotFound if there is no such program. From the only thread of this process.
  static absl::StatusOr<ChildProcess> Start(const std::vector<std::string>& command,
                                            const std::map<std::string, std::string>& environment);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess();

  pid_t pid() const { return pid_; }
  int stderr_fd() const { return stderr_fd_; }  // not blocking
  // Its exit status (128 + signal if killed) once it has ended.
  std::optional<int> Poll();
  void Signal(int signal) const;

 private:
  ChildProcess(pid_t pid, int stderr_fd) : pid_(pid), stderr_fd_(stderr_fd) {}

  pid_t pid_;
  int stderr_fd_;
  std::optional<int> exit_status_;
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_LAUNCH_CHILD_PROCESS_H_
