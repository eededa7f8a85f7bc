#include "runtime/train/shuffle.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace oriel::runtime {
namespace {

using ::testing::ElementsAre;

// The order is part of what makes runs reproducible: it must never change.
TEST(ShuffleTest, OrderIsFixedForever) {
  EXPECT_THAT(ShuffledOrder(8, 0, 0), ElementsAre(6, 0, 4, 3, 7, 2, 5, 1));
}

TEST(ShuffleTest, IsAPermutationThatDependsOnSeedAndEpoch) {
  std::vector<int64_t> order = ShuffledOrder(1000, 1, 0);
  EXPECT_EQ(order, ShuffledOrder(1000, 1, 0));
  EXPECT_NE(order, ShuffledOrder(1000, 1, 1));
  EXPECT_NE(order, ShuffledOrder(1000, 2, 0));
  EXPECT_NE(ShuffledOrder(1000, 1, 0), ShuffledOrder(1000, 0, 1));
  std::sort(order.begin(), order.end());
  std::vector<int64_t> all(1000);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(order, all);
}

// Each sample comes first about equally often.
TEST(ShuffleTest, IsUniform) {
  std::vector<int> counts(10);
  for (int64_t epoch = 0; epoch < 10000; ++epoch) ++counts[ShuffledOrder(10, 7, epoch)[0]];
  // Six standard deviations of a binomial with p = 0.1.
  for (int count : counts) EXPECT_NEAR(count, 1000, 180);
}

TEST(SampleBitsTest, AreOfSeedEpochAndPlace) {
  EXPECT_EQ(SampleBits(1, 2, 3), 7999624018428657575);  // which must never change
  std::set<int64_t> bits;
  for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 63}) {
    for (const int64_t epoch : {0, 1, 2}) {
      for (int64_t place = 0; place < 100; ++place) bits.insert(SampleBits(seed, epoch, place));
    }
  }
  EXPECT_EQ(bits.size(), 900u);
  EXPECT_GE(*bits.begin(), 0);
}

TEST(BatchSamplerTest, TrainingDropsTheIncompleteLastBatch) {
  BatchSampler sampler({10, 4, 0, false, true});
  EXPECT_EQ(sampler.batches_per_epoch(), 2);
  EXPECT_THAT(sampler.Batch({0, 1}), ElementsAre(4, 5, 6, 7));
  EXPECT_EQ(sampler.Next({0, 0}), (DataPosition{0, 1}));
  EXPECT_EQ(sampler.Next({0, 1}), (DataPosition{1, 0}));
}

TEST(BatchSamplerTest, EvaluationPadsIt) {
  BatchSampler sampler({10, 4, 0, false, false});
  EXPECT_EQ(sampler.batches_per_epoch(), 3);
  EXPECT_THAT(sampler.Batch({0, 2}), ElementsAre(8, 9, -1, -1));
}

TEST(BatchSamplerTest, EpochsHaveOtherOrders) {
  BatchSampler sampler({100, 100, 3, true, true});
  const std::vector<int64_t> first = sampler.Batch({0, 0});
  EXPECT_NE(first, sampler.Batch({1, 0}));
  EXPECT_EQ(first, sampler.Batch({0, 0}));
}

}  // namespace
}  // namespace oriel::runtime
