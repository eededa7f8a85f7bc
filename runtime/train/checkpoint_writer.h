// Writes checkpoints.
#ifndef ORIEL_RUNTIME_TRAIN_CHECKPOINT_WRITER_H_
#define ORIEL_RUNTIME_TRAIN_CHECKPOINT_WRITER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/train/checkpoint_index.h"

namespace oriel::runtime {

// A whole tensor to be saved; the shards of other ranks will come as boxes of it.
struct CheckpointSource {
  std::string parameter;
  std::string slot;  // of an optimizer state; empty for the parameter itself
  TensorSpec spec;
  void* data = nullptr;
};

// Writes SAVE_DIR/step-NNNNNNNN and returns its path. It appears complete (written under a
// temporary name, synced, renamed), in place of one of the same step.
absl::StatusOr<std::string> WriteCheckpoint(const std::string& save_dir,
                                            const std::string& model_name,
                                            const TrainingProgress& progress,
                                            const std::vector<CheckpointSource>& sources);

// "step-00000100"
std::string CheckpointFolderName(int64_t step);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_TRAIN_CHECKPOINT_WRITER_H_
