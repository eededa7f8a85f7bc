// Writes checkpoints.
#ifndef ORIEL_RUNTIME_TRAIN_CHECKPOINT_CHECKPOINT_WRITER_H_
#define ORIEL_RUNTIME_TRAIN_CHECKPOINT_CHECKPOINT_WRITER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/comm/communicator.h"
#include "runtime/exec/host_access.h"
#include "runtime/plan/tensor_layout.h"
#include "runtime/train/checkpoint/checkpoint_index.h"

namespace oriel::runtime {

// A tensor to be saved, or a part of one: how it lies over the ranks of a grid, and what this rank
// has of it.
struct CheckpointSource {
  std::string parameter;  // in files
  std::string slot;       // of an optimizer state; empty for the parameter itself
  DType dtype;
  TensorLayout layout;
  HostAccess buffer;  // this rank's box; of nothing on ranks of other grids
  std::string part;   // what the plan calls it, if it is a part of the parameter

  // The plan's name.
  const std::string& name() const { return part.empty() ? parameter : part; }
  // Of the whole tensor.
  TensorSpec spec() const { return {dtype, layout.global()}; }
};

// Writes SAVE_DIR/step-NNNNNNNN and returns its path. Collective over `world` (null for one rank),
// whose ranks are the plan's and see the same folder: each writes the boxes that it owns, rank 0
// the index, of the same tensors on every rank, each whole by its parts. The folder appears
// complete (written under a temporary name, synced, renamed), in place of one of the same step,
// after every rank has written its part; if one can't, nothing appears, it returns why and the
// others return Aborted.
absl::StatusOr<std::string> WriteCheckpoint(const std::string& save_dir,
                                            const CheckpointModel& model,
                                            const TrainingProgress& progress,
                                            const std::vector<CheckpointSource>& sources,
                                            Communicator* world);

// Removes complete checkpoints in SAVE_DIR, but for those of the `keep` last steps up to `step`, of
// later ones, and the best (best_checkpoint.h).
absl::Status RemoveOldCheckpoints(const std::string& save_dir, int64_t step, int64_t keep);

// "step-00000100"
std::string CheckpointFolderName(int64_t step);
// Whether a folder of that name in SAVE_DIR is a checkpoint that is being written.
bool IsUnfinishedCheckpoint(const std::string& name);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_TRAIN_CHECKPOINT_CHECKPOINT_WRITER_H_
