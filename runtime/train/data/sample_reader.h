// Reads the tensors of single samples, in the types and shapes that a plan expects.
#ifndef ORIEL_RUNTIME_TRAIN_DATA_SAMPLE_READER_H_
#define ORIEL_RUNTIME_TRAIN_DATA_SAMPLE_READER_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/train/data/batch_layout.h"
#include "runtime/train/data/npy.h"
#include "runtime/train/data/tar_shards.h"

namespace oriel::runtime {

// Not thread-safe (it keeps a scratch buffer).
class SampleReader {
 public:
  SampleReader(std::shared_ptr<const ShardIndex> index, std::vector<BatchInput> inputs)
      : index_(std::move(index)), inputs_(std::move(inputs)) {}

  // Fills targets[i] with inputs[i].sample of a sample; a target that is null is skipped, but that
  // for their number the headers of images are read.
  // A sample may have fewer images than the input has room for: the first dimension of its member
  // is shorter, or there is no member; inputs of images must agree on their number.
  // Errors start with "SHARD: sample KEY: " and name the member, what was found and what the
  // plan expects.
  absl::Status Read(int64_t sample, const std::vector<char*>& targets);

 private:
  // Reads however many images the sample has, and zeros for the others; returns their number. For
  // the number alone `target` is null.
  absl::StatusOr<int64_t> ReadImages(const ShardSample& sample, const BatchInput& input,
                                     const class ReadFile& file, char* target);
  // Reads a member's bytes to scratch_, or the first ones.
  absl::StatusOr<NpyHeader> ReadHeader(const ShardMember& member, const class ReadFile& file,
                                       bool whole);
  // Finds a member's type and shape, and its data unless `data` is null.
  absl::Status ReadMember(const ShardMember& member, const BatchInput& input,
                          const class ReadFile& file, TensorSpec* found, const char** data);
  absl::Status ReadInput(const ShardSample& sample, const BatchInput& input,
                         const class ReadFile& file, char* target);

  std::shared_ptr<const ShardIndex> index_;
  std::vector<BatchInput> inputs_;
  std::vector<char> scratch_;
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_TRAIN_DATA_SAMPLE_READER_H_
