// Which samples make up which batch.
#ifndef ORIEL_RUNTIME_TRAIN_SHUFFLE_H_
#define ORIEL_RUNTIME_TRAIN_SHUFFLE_H_

#include <cstdint>
#include <vector>

namespace oriel::runtime {

// A permutation of 0..n-1 that depends on seed and epoch only, the same on every platform:
// Fisher-Yates driven by splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
// generators, 2014).
std::vector<int64_t> ShuffledOrder(int64_t n, uint64_t seed, int64_t epoch);

// Where the next batch comes from.
struct DataPosition {
  int64_t epoch = 0;
  int64_t batch = 0;  // within the epoch
  friend bool operator==(const DataPosition& a, const DataPosition& b) {
    return a.epoch == b.epoch && a.batch == b.batch;
  }
};

// Random bits, at least 0, of the sample in this place of an epoch: others for each that a training
// takes, the same however many ranks and microbatches share a batch, and on every platform.
int64_t SampleBits(uint64_t seed, int64_t epoch, int64_t place);
// Those of samples of an evaluation.
inline constexpr int64_t kNoSampleBits = -1;

// Cuts the samples of each epoch into batches.
class BatchSampler {
 public:
  struct Options {
    int64_t samples = 0;  // in the data set
    int64_t batch = 1;    // samples of a global batch
    uint64_t seed = 0;
    bool shuffle = true;
    bool drop_last = true;  // else an incomplete last batch is filled up with kPadding
  };
  static constexpr int64_t kPadding = -1;

  explicit BatchSampler(const Options& options) : options_(options) {}

  int64_t batches_per_epoch() const;
  // The sample of each place in the batch. `position.batch` < batches_per_epoch().
  std::vector<int64_t> Batch(const DataPosition& position);
  // The position behind one.
  DataPosition Next(const DataPosition& position) const;

 private:
  Options options_;
  int64_t order_epoch_ = -1;  // that order_ is of
  std::vector<int64_t> order_;
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_TRAIN_SHUFFLE_H_
