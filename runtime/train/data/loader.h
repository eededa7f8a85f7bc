// Delivers one rank's slice of batch after batch, read ahead in a background thread.
#ifndef ORIEL_RUNTIME_TRAIN_DATA_LOADER_H_
#define ORIEL_RUNTIME_TRAIN_DATA_LOADER_H_

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/train/data/batch_layout.h"
#include "runtime/train/data/sample_reader.h"
#include "runtime/train/data/tar_shards.h"
#include "runtime/train/shuffle.h"

namespace oriel::runtime {

// A rank's part of a batch.
struct Batch {
  DataPosition position;
  // [microbatch][input]: the bytes of BatchInput::microbatch; none if it is not used.
  std::vector<std::vector<std::vector<char>>> data;
  // [microbatch][i]: the sample's number, BatchSampler::kPadding where the data had ended. Such
  // a place repeats the last sample with every label set to ignore_index.
  std::vector<std::vector<int64_t>> samples;
};

class Loader {
 public:
  struct Options {
    uint64_t seed = 0;
    bool shuffle = true;
    bool drop_last = true;    // see BatchSampler
    bool is_training = true;  // else samples have no random bits
    DataPosition start;
    std::optional<int64_t> batches;  // ends after so many; without: never
  };
  // FailedPrecondition if the data does not make one batch; InvalidArgument if `start` is
  // beyond the epoch's last batch.
  static absl::StatusOr<std::unique_ptr<Loader>> Create(std::shared_ptr<const ShardIndex> index,
                                                        BatchLayout layout, const Options& options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The next batch; OutOfRange after the last one. The error of a bad sample is returned by
  // the call for its batch and by all later ones.
  absl::StatusOr<std::unique_ptr<Batch>> Next();
  // Which samples a microbatch of the batch holds, for errors: "0: SHARD: sample KEY; 1: ..".
  std::string Describe(const Batch& batch, int64_t microbatch) const;
  // Of the batch behind `position`.
  DataPosition After(const DataPosition& position) const { return sampler_.Next(position); }

 private:
  Loader(std::shared_ptr<const ShardIndex> index, BatchLayout layout, const Options& options,
         const BatchSampler& sampler);
  void ReadAhead();
  absl::StatusOr<std::unique_ptr<Batch>> ReadBatch(const DataPosition& position);
  absl::Status ReadMicrobatch(const std::vector<int64_t>& places, int64_t microbatch, Batch& batch);

  const std::shared_ptr<const ShardIndex> index_;
  const BatchLayout layout_;
  const Options options_;
  BatchSampler sampler_;  // used by the thread; Next() is const
  SampleReader reader_;   // used by the thread only

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::optional<absl::StatusOr<std::unique_ptr<Batch>>> ready_;
  bool stop_ = false;

  std::thread thread_;
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_TRAIN_DATA_LOADER_H_
