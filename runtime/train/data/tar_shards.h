// The index of a folder of WebDataset shards.
//
// A shard is an uncompressed .tar; members KEY.NAME.npy that follow one another with the same
// KEY (the path up to the first dot of its file name) make one sample, whose tensors are named
// NAME. The index holds where each member's bytes are, so that a sample is read with pread.
#ifndef ORIEL_RUNTIME_TRAIN_DATA_TAR_SHARDS_H_
#define ORIEL_RUNTIME_TRAIN_DATA_TAR_SHARDS_H_

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace oriel::runtime {

struct ShardMember {
  int32_t name = 0;    // index into ShardIndex::member_names()
  int64_t offset = 0;  // of the first byte in the shard
  int64_t size = 0;
};

struct ShardSample {
  int32_t shard = 0;  // index into ShardIndex::shards()
  std::string key;
  int64_t first_member = 0;
  int32_t member_count = 0;
};

// Immutable once read; threads may share it.
class ShardIndex {
 public:
  // Samples are in the order of the shards' names, then of the tar. Errors: NotFound (no such
  // folder, or no .tar in it), InvalidArgument naming the shard (truncated, not a tar,
  // compressed, a member twice in a sample, no sample at all).
  static absl::StatusOr<ShardIndex> Read(const std::string& folder);

  int64_t size() const { return static_cast<int64_t>(samples_.size()); }
  const std::string& folder() const { return folder_; }
  const std::vector<std::string>& shards() const { return shards_; }  // paths
  const std::vector<std::string>& member_names() const { return member_names_; }
  const ShardSample& sample(int64_t i) const { return samples_[i]; }

  // The member of a sample, null if it has none of this name.
  const ShardMember* Find(const ShardSample& sample, const std::string& name) const;
  // "SHARD: sample KEY", for messages.
  std::string Describe(const ShardSample& sample) const;
  // "input_ids, labels": what the sample holds.
  std::string MemberList(const ShardSample& sample) const;

 private:
  absl::Status AddShard(const std::string& path);
  absl::Status AddMember(const std::string& path, int64_t offset, int64_t size);

  std::string folder_;
  std::vector<std::string> shards_;
  std::vector<std::string> member_names_;
  std::unordered_map<std::string, int32_t> member_ids_;
  std::vector<ShardSample> samples_;
  std::vector<ShardMember> members_;
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_TRAIN_DATA_TAR_SHARDS_H_
