// Reads the tensors of single samples, in the types and shapes that a plan expects.
#ifndef ORIEL_RUNTIME_TRAIN_SAMPLE_READER_H_
#define ORIEL_RUNTIME_TRAIN_SAMPLE_READER_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "runtime/train/batch_layout.h"
#include "runtime/train/tar_shards.h"

namespace oriel::runtime {

// Not thread-safe (it keeps a scratch buffer).
class SampleReader {
 public:
  SampleReader(std::shared_ptr<const ShardIndex> index, std::vector<BatchInput> inputs)
      : index_(std::move(index)), inputs_(std::move(inputs)) {}

  // Fills targets[i] with inputs[i].sample of a sample; a target that is null is skipped.
  // A sample may have fewer images than the input has room for: the first dimension of its member
  // is shorter, or there is no member; inputs of images must agree on their number.
  // Errors start with "SHARD: sample KEY: " and name the member, what was found and what the
  // plan expects.
  absl::Status Read(int64_t sample, const std::vector<char*>& targets);

 private:
  // Reads however many images the sample has, and zeros for the others; returns their number.
  absl::StatusOr<int64_t> ReadImages(const ShardSample& sample, const BatchInput& input,
                                     const class ReadFile& file, char* target);
  absl::Status ReadMember(const ShardMember& member, const BatchInput& input,
                          const class ReadFile& file, TensorSpec* found, const char** data);
  absl::Status ReadInput(const ShardSample& sample, const BatchInput& input,
                         const class ReadFile& file, char* target);

  std::shared_ptr<const ShardIndex> index_;
  std::vector<BatchInput> inputs_;
  std::vector<char> scratch_;
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_TRAIN_SAMPLE_READER_H_
