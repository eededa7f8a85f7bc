// Finds and reads checkpoints.
#ifndef ORIEL_RUNTIME_TRAIN_CHECKPOINT_CHECKPOINT_READER_H_
#define ORIEL_RUNTIME_TRAIN_CHECKPOINT_CHECKPOINT_READER_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/train/checkpoint/checkpoint_index.h"
#include "runtime/train/checkpoint/safetensors.h"

namespace oriel::runtime {

// The checkpoint that `path` stands for: itself if it is one (step-NNNNNNNN), or the complete one
// with the highest step in it. NotFound, saying what was looked for, if there is none.
absl::StatusOr<std::string> FindCheckpoint(const std::string& path);
// Of a path that ends in step-NNNNNNNN; -1 for another.
int64_t StepOfCheckpoint(const std::string& path);

// The complete checkpoints in a folder, by step.
absl::StatusOr<std::map<int64_t, std::string>> CheckpointsIn(const std::string& folder);

// Of names, for messages: "a, b, c and 4 more".
std::string SomeOf(const std::vector<std::string>& names);

class CheckpointReader {
 public:
  // Opens what FindCheckpoint finds. Errors of the index or of a file it names (missing, damaged,
  // other shapes) name the file.
  static absl::StatusOr<CheckpointReader> Open(const std::string& path);

  const std::string& path() const { return path_; }  // of the step's folder
  const CheckpointIndex& index() const { return index_; }
  // All that is read.
  std::vector<std::string> files() const;

  // Lets go of the files with tensors, which take room on the disk as long as they are open, also
  // when they have been removed. Nothing can be read then, but for the index, until Reopen.
  void Close() { files_.clear(); }
  absl::Status Reopen() { return WithOneBefore(OpenFiles()); }

  // FailedPrecondition, naming the first missing, extra and different parameters, if these are
  // not the model's. Floats may be of other types.
  absl::Status CheckModel(const std::string& model_name,
                          const std::vector<NamedSpec>& parameters) const;
  // A warning if the plan is of another model file than what was trained; else empty. It may well
  // fit: the same model, exported for longer sequences.
  std::string OtherModelFile(const plan::Plan& plan) const;
  // DataLoss, naming file and tensor, if what lies in the files is not what was saved: by the
  // checksums of its parameters and, `with_optimizer`, its optimizer states. Of `ranks` that call
  // it, each reads an equal part.
  absl::Status CheckData(bool with_optimizer, int64_t rank, int64_t ranks) const;
  // Copies a box of a parameter with this shape, from the shards that it meets, and converts it to
  // this type: the f32 master weights of a bf16 plan are the parameters of a plan in f32. Reads
  // nothing else.
  absl::Status ReadParameter(const std::string& name, const TensorSpec& spec, const Box& box,
                             void* target) const;
  // A parameter's bytes in the mapped file, where one shard is all of it; else null. May be
  // unaligned.
  const char* FindWhole(const std::string& name, const TensorSpec& spec) const;
  absl::Status ReadState(const std::string& parameter, const std::string& slot,
                         const TensorSpec& spec, const Box& box, void* target) const;

 private:
  absl::Status OpenIndexAndFiles();
  absl::Status OpenFiles();
  absl::Status ReadTensor(const std::string& what, const CheckpointTensor* tensor,
                          const TensorSpec& spec, const Box& box, void* target) const;

  // An error of a checkpoint that was found as the latest of several names the one before.
  absl::Status WithOneBefore(const absl::Status& error) const;

  std::string given_;  // to Open
  std::string path_;
  CheckpointIndex index_;
  std::map<std::string, SafetensorsFile> files_;
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_TRAIN_CHECKPOINT_CHECKPOINT_READER_H_
