#include "runtime/train/shuffle.h"

#include <numeric>
#include <utility>

#include "runtime/base/philox.h"

namespace oriel::runtime {
namespace {

class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t state) : state_(state) {}
  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // Uniform in [0, bound), without bias: the lowest 2^64 mod bound values are drawn again.
  uint64_t Below(uint64_t bound) {
    const uint64_t excess = (0 - bound) % bound;
    uint64_t value = Next();
    while (value < excess) value = Next();
    return value % bound;
  }

 private:
  uint64_t state_;
};

}  // namespace

std::vector<int64_t> ShuffledOrder(int64_t n, uint64_t seed, int64_t epoch) {
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  // Two rounds of mixing, so that (seed 1, epoch 0) and (seed 0, epoch 1) share nothing.
  SplitMix64 seeded(seed);
  SplitMix64 random(seeded.Next() + static_cast<uint64_t>(epoch));
  random = SplitMix64(random.Next());
  for (int64_t i = n - 1; i > 0; --i) {
    std::swap(order[i], order[random.Below(static_cast<uint64_t>(i) + 1)]);
  }
  return order;
}

int64_t SampleBits(uint64_t seed, int64_t epoch, int64_t place) {
  const auto low = [](auto bits) { return static_cast<uint32_t>(bits); };
  const auto high = [](auto bits) { return static_cast<uint32_t>(uint64_t(bits) >> 32); };
  const PhiloxCounter words =
      Philox({low(place), high(place), low(epoch), high(epoch)}, {low(seed), high(seed)});
  return static_cast<int64_t>((uint64_t{words[0]} << 32 | words[1]) >> 1);
}

int64_t BatchSampler::batches_per_epoch() const {
  const int64_t whole = options_.samples / options_.batch;
  return options_.drop_last || options_.samples % options_.batch == 0 ? whole : whole + 1;
}

std::vector<int64_t> BatchSampler::Batch(const DataPosition& position) {
  if (options_.shuffle && order_epoch_ != position.epoch) {
    order_ = ShuffledOrder(options_.samples, options_.seed, position.epoch);
    order_epoch_ = position.epoch;
  }
  std::vector<int64_t> batch(options_.batch, kPadding);
  for (int64_t i = 0; i < options_.batch; ++i) {
    const int64_t place = position.batch * options_.batch + i;
    if (place < options_.samples) batch[i] = options_.shuffle ? order_[place] : place;
  }
  return batch;
}

DataPosition BatchSampler::Next(const DataPosition& position) const {
  if (position.batch + 1 < batches_per_epoch()) return {position.epoch, position.batch + 1};
  return {position.epoch + 1, 0};
}

}  // namespace oriel::runtime
