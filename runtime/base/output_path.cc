#include "runtime/base/output_path.h"

#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "runtime/base/files.h"
#include "runtime/base/status.h"

namespace oriel::runtime {

absl::Status CheckIsNotRead(const std::string& path, const std::vector<std::string>& inputs) {
  std::error_code ignored;
  for (const std::string& input : inputs) {
    if (input.empty() || !std::filesystem::equivalent(path, input, ignored)) continue;
    return absl::InvalidArgumentError(absl::StrCat("can't write '", path, "': it is '", input,
                                                   "', which is read; give another path"));
  }
  return absl::OkStatus();
}

absl::Status CheckOutputPath(const std::string& path, const std::vector<std::string>& inputs) {
  if (path.empty()) return absl::OkStatus();
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return absl::InvalidArgumentError(
        absl::StrCat("can't write '", path, "': it is a folder; give a file's name"));
  }
  ORIEL_RETURN_IF_ERROR(CheckIsNotRead(path, inputs));
  if (IsStream(path)) {
    if (access(path.c_str(), W_OK) == 0) return absl::OkStatus();
    return absl::PermissionDeniedError(
        absl::StrCat("can't write '", path, "': it is not yours to write to; give another path"));
  }
  ORIEL_ASSIGN_OR_RETURN(const std::string target, FollowLinks(path));
  const std::string folder = FolderOf(target);
  if (!std::filesystem::is_directory(folder, ignored)) {
    return absl::NotFoundError(absl::StrCat("can't write '", path, "': there is no folder '",
                                            folder, "'; make it, or give another path"));
  }
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    return absl::PermissionDeniedError(
        absl::StrCat("can't write '", path, "': the folder '", folder,
                     "' is not yours to write in; give another path"));
  }
  return absl::OkStatus();
}

}  // namespace oriel::runtime
