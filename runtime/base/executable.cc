#include "runtime/base/executable.h"

#include <filesystem>
#include <system_error>

#include "runtime/base/status.h"

namespace oriel::runtime {

absl::StatusOr<std::string> ExecutablePath() {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return absl::UnavailableError("cannot read /proc/self/exe: " + error.message());
  return path.string();
}

absl::StatusOr<std::string> ExecutableFolder() {
  ORIEL_ASSIGN_OR_RETURN(const std::string path, ExecutablePath());
  return path.substr(0, path.rfind('/') + 1);
}

}  // namespace oriel::runtime
