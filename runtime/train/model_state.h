// The parameters and optimizer states of a rank, as buffers of its executor: of each tensor that
// its grid keeps the box that the storage sharding gives the rank. Names, files and random values
// are in coordinates of the whole tensors, so that all shardings and pipeline stages start from,
// save and load the same bits.
//
// A bf16 parameter that is trained has a master, its value in f32: an optimizer state, but in files
// it is the parameter. Where the state is the master's remainder, the two are one tensor here.
// Initial values and checkpoints fill both, the parameter by rounding, so that plans in f32 and
// bf16 load what either saved.
#ifndef ORIEL_RUNTIME_TRAIN_MODEL_STATE_H_
#define ORIEL_RUNTIME_TRAIN_MODEL_STATE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/exec/executor.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/train/checkpoint/checkpoint_reader.h"
#include "runtime/train/checkpoint/checkpoint_writer.h"

namespace oriel::runtime {

// What TakeWeights has found, by names in files.
struct WeightsTaken {
  int64_t taken = 0;
  std::vector<std::string> missing;  // of the plan's parameters
  std::vector<std::string> unused;   // of the checkpoint's
  std::vector<std::string> rounded;  // in fewer bits there than the plan has
};

class ModelState {
 public:
  // Plan and executor must outlive the result. InvalidArgument if a buffer is not the rank's box.
  static absl::StatusOr<ModelState> Bind(const plan::Plan& plan, int64_t rank, Executor& executor);

  // Fills the parameters and their masters: from the files that the plan names, relative to
  // `plan_folder`, or with random values. Other optimizer states are left as they are (zero in a
  // new executor).
  absl::Status Initialize(const std::string& plan_folder, int num_threads);
  // Fills parameters, their masters and, unless only evaluating, optimizer states.
  // FailedPrecondition if the checkpoint is of another model.
  absl::Status Restore(const CheckpointReader& checkpoint, bool with_optimizer);

  // Fills those parameters, and their masters, that the checkpoint has, of whatever model; the
  // others are left as they are. FailedPrecondition, naming it, for one of another shape, and if
  // it has none.
  absl::StatusOr<WeightsTaken> TakeWeights(const CheckpointReader& checkpoint);

  // What is in a buffer of this rank.
  struct Held {
    const plan::Parameter* parameter;  // itself, or whose state it is
    CheckpointSource source;           // as it lies on this rank's grid
  };
  const std::vector<Held>& held() const { return held_; }
  // All of the plan, for a checkpoint: each as it lies on its home grid, where this rank may have
  // nothing of it. A parameter with a master is the master.
  const std::vector<CheckpointSource>& sources() const { return sources_; }
  // The parameters alone (masters in their place), whole, as a safetensors file that rank 0 writes.
  // Collective over `world` (null for one rank). One parameter at a time takes memory.
  absl::Status DumpParameters(const std::string& path, Communicator* world) const;

 private:
  ModelState(const plan::Plan& plan, int64_t rank) : plan_(&plan), rank_(rank) {}

  // The parameters in files (masters in their place): of each the sources that make it up.
  std::vector<std::vector<const CheckpointSource*>> WholeParameters() const;

  const plan::Plan* plan_;
  int64_t rank_;
  std::vector<CheckpointSource> sources_;  // parameters in the plan's order, then states
  std::vector<Held> held_;                 // in the same order
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_TRAIN_MODEL_STATE_H_
