#include "passes/overlap/buckets.h"

#include <random>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace oriel {
namespace {

using ::testing::ElementsAre;

using Places = std::vector<int>;

TEST(FillBuckets, UpToTheLimit) {
  const std::vector<BucketItem> items(5, {{}, 0, 4});
  EXPECT_THAT(fillBuckets(items, 8), ElementsAre(Places{0, 1}, Places{2, 3}, Places{4}));
  EXPECT_THAT(fillBuckets(items, 11), ElementsAre(Places{0, 1}, Places{2, 3}, Places{4}));
  EXPECT_THAT(fillBuckets(items, 3),
              ElementsAre(Places{0}, Places{1}, Places{2}, Places{3}, Places{4}));
}

TEST(FillBuckets, OneForEachClass) {
  EXPECT_THAT(fillBuckets({{{}, 0, 1}, {{}, -1, 0}, {{}, 1, 1}, {{}, 0, 1}, {{}, 1, 1}}, 8),
              ElementsAre(Places{0, 3}, Places{2, 4}));
}

TEST(FillBuckets, NothingTakesFromItsOwnBucket) {
  // 2 takes what 0 makes, by way of 1.
  EXPECT_THAT(fillBuckets({{{}, 0, 1}, {{0}, -1, 0}, {{1}, 0, 1}, {{}, 0, 1}}, 8),
              ElementsAre(Places{0}, Places{2, 3}));
}

TEST(FillBuckets, NoBucketsTakeFromEachOther) {
  // 2 takes from the bucket of 0, 3 from that of 1: together each would need the other first.
  EXPECT_THAT(fillBuckets({{{}, 0, 1}, {{}, 1, 1}, {{0}, 1, 1}, {{1}, 0, 1}}, 8),
              ElementsAre(Places{0}, Places{1, 2}, Places{3}));
}

// Whatever takes what, the buckets and the other items can be put in an order.
TEST(FillBuckets, RandomItemsHaveAnOrder) {
  for (int seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    auto upTo = [&](int n) { return static_cast<int>(random() % n); };
    std::vector<BucketItem> items(1 + upTo(30));
    for (size_t i = 0; i < items.size(); ++i) {
      for (int k = upTo(3); k > 0 && i > 0; --k) items[i].operands.push_back(upTo(i));
      items[i].kind = upTo(4) - 1;
      items[i].bytes = upTo(5);
    }
    std::vector<std::vector<int>> groups = fillBuckets(items, 12);
    for (size_t i = 0; i < items.size(); ++i) {
      if (items[i].kind < 0) groups.push_back({static_cast<int>(i)});
    }
    std::set<int> done;
    for (bool moved = true; moved;) {
      moved = false;
      for (std::vector<int>& group : groups) {
        bool ready = !group.empty();
        for (int item : group) {
          for (int operand : items[item].operands) ready = ready && done.count(operand) > 0;
        }
        if (!ready) continue;
        done.insert(group.begin(), group.end());
        group.clear();
        moved = true;
      }
    }
    EXPECT_EQ(done.size(), items.size()) << seed;
  }
}

}  // namespace
}  // namespace oriel
