#include "passes/stage/balance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace oriel {
namespace {

using ::testing::ElementsAre;

TEST(Balance, EqualPartsMakeEqualStages) {
  EXPECT_THAT(balancedCuts({1, 1, 1, 1}, 2, 2), ElementsAre(0, 2));
  EXPECT_THAT(balancedCuts({1, 1, 1, 1}, 4, 4), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(balancedCuts({1, 1}, 1, 1), ElementsAre(0));
}

TEST(Balance, TheSlowestStageIsAsFastAsCanBe) {
  // A vision encoder without backward in front of layers that take three times as long.
  EXPECT_THAT(balancedCuts({1, 1, 1, 1, 3, 3, 3, 3}, 2, 2), ElementsAre(0, 5));
  EXPECT_THAT(balancedCuts({9, 1, 1, 1, 1}, 3, 3), ElementsAre(0, 1, 3));
}

TEST(Balance, ThenTheOthersAreEven) {
  // 10 is the least in any case; behind it, 2 and 2 are better than 1 and 3.
  EXPECT_THAT(balancedCuts({10, 1, 1, 1, 1}, 3, 3), ElementsAre(0, 1, 3));
}

double slowest(const std::vector<double>& costs, const std::vector<int64_t>& firsts,
               int64_t grids) {
  const std::vector<double> sums = gridCosts(costs, firsts, grids);
  return *std::max_element(sums.begin(), sums.end());
}

// Of all ways to cut into stages.
double leastSlowest(const std::vector<double>& costs, std::vector<int64_t> firsts, size_t stages,
                    int64_t grids) {
  if (firsts.size() == stages) return slowest(costs, firsts, grids);
  double least = 1e300;
  for (int64_t first = firsts.back() + 1; first < static_cast<int64_t>(costs.size()); ++first) {
    std::vector<int64_t> longer = firsts;
    longer.push_back(first);
    least = std::min(least, leastSlowest(costs, longer, stages, grids));
  }
  return least;
}

TEST(Balance, IsTheBestOfAllCuts) {
  std::mt19937 random(0);
  for (int round = 0; round < 200; ++round) {
    std::vector<double> costs(4 + random() % 7);
    for (double& cost : costs) cost = 1e-6 * static_cast<double>(random() % 100);
    const auto stages = static_cast<int64_t>(1 + random() % 4);
    const double best = leastSlowest(costs, {0}, stages, stages);
    EXPECT_NEAR(slowest(costs, balancedCuts(costs, stages, stages), stages), best, 1e-12);
  }
}

TEST(Balance, TheLargestTotalMayCountWhatIsBefore) {
  auto total = [](double before, double own) { return before + 2 * own; };
  // Stages of 2 and 1: totals of 4 and of 2 + 2.
  EXPECT_DOUBLE_EQ(leastLargest({1, 1, 1}, 2, total), 4);
  EXPECT_DOUBLE_EQ(leastLargest({1, 1, 1}, 1, total), 6);
  EXPECT_DOUBLE_EQ(leastLargest({3, 1, 1}, 2, total), 3 + 2 * 2);
}

TEST(Balance, AGridWithSeveralStagesCountsTheirSum) {
  // Grid 0 has the stages 0 and 2: with the big part in one, the other is small.
  const std::vector<double> costs = {6, 1, 1, 1, 1, 1, 1};
  const std::vector<int64_t> firsts = balancedCuts(costs, 4, 2);
  EXPECT_EQ(firsts.size(), 4u);
  EXPECT_LE(slowest(costs, firsts, 2), 7);
  EXPECT_THAT(gridCosts({1, 2, 3, 4}, {0, 1, 2, 3}, 2), ElementsAre(4, 6));
  EXPECT_THAT(balancedCuts({1, 1, 1, 1, 1, 1, 1, 1}, 4, 2), ElementsAre(0, 2, 4, 6));
}

}  // namespace
}  // namespace oriel
