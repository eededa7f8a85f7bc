#include "driver/measure.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "passes/cost/calibrate.h"
#include "runtime/base/executable.h"
#include "runtime/base/files.h"
#include "runtime/base/status.h"

extern char** environ;

namespace oriel::driver {

namespace {

std::string readAll(int file) {
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t count = read(file, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(buffer, static_cast<size_t>(count));
  }
}

}  // namespace

absl::StatusOr<std::string> outputOf(const std::vector<std::string>& command) {
  int ends[2];
  if (pipe(ends) != 0) return absl::InternalError(absl::StrCat("pipe: ", std::strerror(errno)));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t process = 0;
  const int error =
      posix_spawn(&process, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    return absl::NotFoundError(
        absl::StrCat("can't start '", command[0], "': ", std::strerror(error)));
  }
  std::string text = readAll(ends[0]);
  close(ends[0]);
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return text;
  return absl::InternalError(
      absl::StrCat("'", command[0], "' ",
                   WIFEXITED(status) ? absl::StrCat("ended with exit status ", WEXITSTATUS(status))
                                     : absl::StrCat("was ended by signal ", WTERMSIG(status))));
}

absl::Status measureCluster(const std::string& file, const std::vector<std::string>& arguments) {
  ORIEL_ASSIGN_OR_RETURN(const std::string folder, runtime::ExecutableFolder());
  std::vector<std::string> command = {folder + "oriel-run", "--measure"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  ORIEL_ASSIGN_OR_RETURN(const std::string text, outputOf(command));
  ORIEL_ASSIGN_OR_RETURN(const MachineMeasurements measured, readMeasurements(text));
  ORIEL_ASSIGN_OR_RETURN(const Cluster cluster, calibrate(measured));
  ORIEL_RETURN_IF_ERROR(runtime::WriteTextAtomically(
      file, absl::StrCat("# Measured by oriel doctor --measure. ",
                         calibrationErrors(cluster, measured), ".\n", clusterText(cluster))));
  std::printf("%s: %lld devices; %s\n", file.c_str(), static_cast<long long>(cluster.devices()),
              calibrationErrors(cluster, measured).c_str());
  return absl::OkStatus();
}

}  // namespace oriel::driver
