#include "runtime/train/checkpoint_writer.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/files.h"
#include "runtime/base/status.h"
#include "runtime/train/safetensors.h"

namespace oriel::runtime {
namespace {

constexpr char kModelFile[] = "model.safetensors";
constexpr char kOptimizerFile[] = "optimizer.safetensors";

void RemoveFolder(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

// Puts the finished folder in its place, where one of an earlier run may be.
absl::Status Publish(const std::string& temporary, const std::string& target) {
  // A folder with files in it cannot be renamed over; exchanging leaves no moment without one.
  // Where the file system can't exchange, the old one goes first.
  if (access(target.c_str(), F_OK) == 0) {
    if (renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) {
      RemoveFolder(temporary);
      return absl::OkStatus();
    }
    RemoveFolder(target);
  }
  if (rename(temporary.c_str(), target.c_str()) != 0) {
    return ErrnoError(target, "rename a finished checkpoint to", errno);
  }
  return absl::OkStatus();
}

absl::Status WriteFiles(const std::string& folder, const std::string& model_name,
                        const TrainingProgress& progress,
                        const std::vector<CheckpointSource>& sources) {
  CheckpointIndex index;
  index.model_name = model_name;
  index.progress = progress;
  std::vector<NamedTensor> model, optimizer;
  std::vector<NamedSpec> parameters;
  for (const CheckpointSource& source : sources) {
    const bool is_state = !source.slot.empty();
    std::string name =
        is_state ? absl::StrCat(source.slot, "/", source.parameter) : source.parameter;
    CheckpointTensor tensor{source.spec,
                            {{is_state ? kOptimizerFile : kModelFile, name,
                              Shape(source.spec.shape.size(), 0), source.spec.shape}}};
    if (is_state) {
      index.optimizer_states[source.parameter][source.slot] = std::move(tensor);
    } else {
      index.parameters[source.parameter] = std::move(tensor);
      parameters.push_back({source.parameter, source.spec});
    }
    (is_state ? optimizer : model).push_back({std::move(name), source.spec, source.data});
  }
  index.fingerprint = FingerprintParameters(std::move(parameters));
  ORIEL_RETURN_IF_ERROR(WriteSafetensors(JoinPath(folder, kModelFile), model));
  ORIEL_RETURN_IF_ERROR(WriteSafetensors(JoinPath(folder, kOptimizerFile), optimizer));
  ORIEL_ASSIGN_OR_RETURN(std::string text, EncodeCheckpointIndex(index));
  return WriteTextAtomically(JoinPath(folder, "index.json"), text);
}

}  // namespace

std::string CheckpointFolderName(int64_t step) { return absl::StrFormat("step-%08d", step); }

absl::StatusOr<std::string> WriteCheckpoint(const std::string& save_dir,
                                            const std::string& model_name,
                                            const TrainingProgress& progress,
                                            const std::vector<CheckpointSource>& sources) {
  ORIEL_RETURN_IF_ERROR(MakeFolders(save_dir));
  const std::string target = JoinPath(save_dir, CheckpointFolderName(progress.step));
  const std::string temporary =
      JoinPath(save_dir, absl::StrCat(".", CheckpointFolderName(progress.step), ".tmp"));
  RemoveFolder(temporary);  // of a run that was killed while it saved
  ORIEL_RETURN_IF_ERROR(MakeFolders(temporary));
  absl::Status status = WriteFiles(temporary, model_name, progress, sources);
  if (status.ok()) status = Publish(temporary, target);
  if (!status.ok()) {
    RemoveFolder(temporary);
    return status;
  }
  ORIEL_RETURN_IF_ERROR(SyncFolder(save_dir));
  return target;
}

}  // namespace oriel::runtime
