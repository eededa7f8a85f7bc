#include "passes/strategy/cuts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace oriel {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Cuts, AreSortedAndOnce) {
  std::vector<int64_t> cuts = {8, 2, 1, 2, 4};
  EXPECT_EQ(nestCuts(&cuts), std::nullopt);
  EXPECT_THAT(cuts, ElementsAre(1, 2, 4, 8));
}

TEST(Cuts, ThatDoNotNestAreNamed) {
  std::vector<int64_t> cuts = {12, 3, 1, 4};
  EXPECT_EQ(nestCuts(&cuts), CutClash(3, 4));
}

TEST(Cuts, MakeAxes) {
  EXPECT_THAT(axisSizes({2}, 8), ElementsAre(2, 4));
  EXPECT_THAT(axisSizes({1, 2, 4, 8}, 8), ElementsAre(2, 2, 2));
  EXPECT_THAT(axisSizes({}, 6), ElementsAre(6));
  EXPECT_THAT(axisSizes({1}, 1), IsEmpty());
}

}  // namespace
}  // namespace oriel
