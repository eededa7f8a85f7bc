// index.json of a checkpoint: what is in it, in global coordinates.
//
//   SAVE_DIR/step-00000100/
//     model.safetensors      parameters, also frozen ones, by the names of the ONNX initializers
//     optimizer.safetensors  optimizer state, "SLOT/PARAMETER"
//     index.json
//
// A plan that stores parameters, or optimizer states, in pieces or on several grids saves those in
// one file for each rank that has something of its own: model-rank00003.safetensors,
// optimizer-rank00003.safetensors. Each tensor lists the shards that make it up, so that a plan
// with another layout can read what any plan saved.
#ifndef ORIEL_RUNTIME_TRAIN_CHECKPOINT_CHECKPOINT_INDEX_H_
#define ORIEL_RUNTIME_TRAIN_CHECKPOINT_CHECKPOINT_INDEX_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/box.h"
#include "runtime/base/tensor.h"
#include "runtime/train/checkpoint/safetensors.h"
#include "runtime/train/shuffle.h"

namespace oriel::runtime {

// A box of a tensor, stored as one tensor of a safetensors file.
struct CheckpointShard {
  std::string file;  // in the checkpoint's folder
  std::string name;  // in that file
  Box box;           // "offsets" and "shape" of the JSON
  // Of its bytes ("crc32" of the JSON, hexadecimal); checkpoints that were saved before don't say.
  std::optional<uint32_t> crc32 = std::nullopt;
};

struct CheckpointTensor {
  TensorSpec spec;  // of the whole tensor
  std::vector<CheckpointShard> shards;
};

// Where training stands, apart from tensors.
struct TrainingProgress {
  int64_t step = 0;       // finished steps
  DataPosition position;  // of the next batch
  uint64_t seed = 0;      // of the order of the data
  bool shuffle = true;
  int64_t samples = 0;       // in the data set
  int64_t global_batch = 0;  // samples per batch: what `position` counts in
};

// What was trained.
struct CheckpointModel {
  std::string name;    // Plan.model_name
  std::string path;    // of the ONNX file, and ..
  std::string sha256;  // .. of its bytes, as Plan.provenance; empty if a checkpoint does not know
};

struct CheckpointIndex {
  CheckpointModel model;
  std::string fingerprint;  // FingerprintParameters
  TrainingProgress progress;
  std::map<std::string, CheckpointTensor> parameters;
  // By parameter, then slot.
  std::map<std::string, std::map<std::string, CheckpointTensor>> optimizer_states;
};

inline constexpr int64_t kCheckpointVersion = 1;

// With a checksum of its own as the last member, "crc32".
absl::StatusOr<std::string> EncodeCheckpointIndex(const CheckpointIndex& index);
// InvalidArgument names `path` and what is wrong: not JSON, newer version, missing members,
// shards that don't cover their tensor exactly once; DataLoss that the checksum does not fit.
absl::StatusOr<CheckpointIndex> ParseCheckpointIndex(const std::string& text,
                                                     const std::string& path);

// Hash (64-bit FNV-1a, hexadecimal) of names, types and shapes, whatever their order.
std::string FingerprintParameters(std::vector<NamedSpec> parameters);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_TRAIN_CHECKPOINT_CHECKPOINT_INDEX_H_
