#include "runtime/plan/range_set.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace oriel::runtime {
namespace {

TEST(RangeSet, TouchingIsNoOverlap) {
  RangeSet set;
  set.Insert({4, 8});
  EXPECT_FALSE(set.Overlaps({0, 4}));
  EXPECT_FALSE(set.Overlaps({8, 12}));
  EXPECT_FALSE(set.Overlaps({6, 6}));
  EXPECT_TRUE(set.Overlaps({7, 9}));
  EXPECT_TRUE(set.Overlaps({5, 6}));
  EXPECT_TRUE(set.Overlaps({0, 20}));
}

TEST(RangeSet, SaysWhatPairsSay) {
  std::mt19937 random(1);
  const auto range = [&] {
    const int64_t begin = random() % 40;
    return Range{begin, begin + static_cast<int64_t>(random() % 6)};
  };
  for (int trial = 0; trial < 2000; ++trial) {
    RangeSet set;
    std::vector<Range> all;
    for (size_t i = 0; i < trial % 8U; ++i) {
      all.push_back(range());
      set.Insert(all.back());
    }
    for (int i = 0; i < 8; ++i) {
      const Range other = range();
      bool overlaps = false;
      for (const Range& each : all) {
        overlaps |= !each.empty() && !other.empty() && each.Overlaps(other);
      }
      EXPECT_EQ(set.Overlaps(other), overlaps) << other.begin << " to " << other.end;
    }
  }
}

}  // namespace
}  // namespace oriel::runtime
