// mpirun as a child process.
#ifndef ORIEL_RUNTIME_LAUNCH_MPIRUN_PROCESS_H_
#define ORIEL_RUNTIME_LAUNCH_MPIRUN_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace oriel::runtime {

// Started in a process group of its own, so that a terminal's Ctrl-C reaches only us. Its stdout
// is ours, its stderr a pipe. It ends with us.
class MpirunProcess {
 public:
  // `environment` is added to ours. NotFound if there is no mpirun.
  static absl::StatusOr<MpirunProcess> Start(const std::vector<std::string>& arguments,
                                             const std::map<std::string, std::string>& environment);
  MpirunProcess(MpirunProcess&& other) noexcept;
  MpirunProcess& operator=(MpirunProcess&&) = delete;
  ~MpirunProcess();

  int stderr_fd() const { return stderr_fd_; }  // not blocking
  // Its exit status (128 + signal if killed) once it has ended.
  std::optional<int> Poll();
  void Signal(int signal) const;

 private:
  MpirunProcess(pid_t pid, int stderr_fd) : pid_(pid), stderr_fd_(stderr_fd) {}

  pid_t pid_;
  int stderr_fd_;
  std::optional<int> exit_status_;
};

// Settings for ranks that share one machine, for Open MPI 4 and 5: run as root in a container,
// more ranks than cores, no pinning. Nothing that the user has set is changed.
std::map<std::string, std::string> LocalMpiEnvironment();

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_LAUNCH_MPIRUN_PROCESS_H_
