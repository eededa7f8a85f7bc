#include "passes/stage/schedule_cuts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "passes/stage/balance.h"
#include "passes/stage/schedule_cuts_testing.h"

namespace oriel {
namespace {

using ::testing::ElementsAre;
using Cuts = std::vector<int64_t>;

StageTimes part(double forward, double backward) {
  return {forward, backward, backward / 2, backward / 2};
}

Cuts evenCuts(const std::vector<StageTimes>& parts, const StagesToCut& row) {
  std::vector<double> costs;
  for (const StageTimes& times : parts) costs.push_back(times.forward + times.backward);
  return balancedCuts(costs, row.stages, row.stages);
}

// What is still to be placed: none of the stages is empty.
double leastMakespan(const std::vector<StageTimes>& parts, Cuts cuts, const StagesToCut& row) {
  if (static_cast<int64_t>(cuts.size()) == row.stages) return makespanOf(parts, cuts, row);
  double least = 1e300;
  for (int64_t next = cuts.back() + 1; next < static_cast<int64_t>(parts.size()); ++next) {
    Cuts longer = cuts;
    longer.push_back(next);
    least = std::min(least, leastMakespan(parts, longer, row));
  }
  return least;
}

TEST(ScheduleCuts, EqualPartsMakeEqualStages) {
  const std::vector<StageTimes> parts(8, part(1, 2));
  EXPECT_THAT(cutsForSchedule(parts, {ScheduleKind::kOneFOneB, 4, 4, 8}), ElementsAre(0, 2, 4, 6));
  EXPECT_THAT(cutsForSchedule(parts, {ScheduleKind::kInterleaved, 4, 2, 8}),
              ElementsAre(0, 2, 4, 6));
  EXPECT_THAT(cutsForSchedule(parts, {ScheduleKind::kOneFOneB, 8, 8, 1}),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

// Stages of 2 and 3 blocks: a grid has one of each, and in the first half of the grids the smaller
// one comes first, in the other half the larger one, so that few wait for what takes longer.
TEST(ScheduleCuts, StagesOfAGridBalanceEachOther) {
  const std::vector<StageTimes> parts(40, part(1, 2));
  const StagesToCut row = {ScheduleKind::kInterleaved, 16, 8, 32};
  const Cuts cuts = cutsForSchedule(parts, row);
  std::vector<double> costs(parts.size(), 3);
  EXPECT_THAT(gridCosts(costs, cuts, 8), ::testing::Each(15));
  EXPECT_LT(makespanOf(parts, cuts, row), 0.95 * makespanOf(parts, evenCuts(parts, row), row));
}

TEST(ScheduleCuts, WhereMicrobatchesAreFewTheLastStageIsSmall) {
  std::vector<StageTimes> parts(32, part(1, 2));
  parts.push_back(part(1.5, 3));
  const StagesToCut row = {ScheduleKind::kOneFOneB, 8, 8, 16};
  EXPECT_LT(makespanOf(parts, cutsForSchedule(parts, row), row),
            0.96 * makespanOf(parts, evenCuts(parts, row), row));
}

// What is frozen has no backward, and nothing waits for it.
TEST(ScheduleCuts, NearTheBestOfAllCuts) {
  std::mt19937 random(0);
  for (int round = 0; round < 60; ++round) {
    std::vector<StageTimes> parts(7 + random() % 4);
    const size_t frozen = random() % 3;
    for (size_t i = 0; i < parts.size(); ++i) {
      const double forward = 1 + static_cast<double>(random() % 10);
      parts[i] = part(forward, i < frozen ? 0 : 2 * forward);
    }
    const auto kind = static_cast<ScheduleKind>(round % 4);
    const int64_t grids = kind == ScheduleKind::kInterleaved ? 2 : 3;
    const int64_t stages = kind == ScheduleKind::kInterleaved ? 4 : 3;
    const StagesToCut row = {kind, stages, grids, 6};
    const double least = leastMakespan(parts, {0}, row);
    EXPECT_LE(makespanOf(parts, cutsForSchedule(parts, row), row), 1.0051 * least) << round;
  }
}

TEST(ScheduleCuts, SomeMicrobatchesStandForAll) {
  // What the first rounds take tells little of the others.
  for (double head : {0.5, 2.5, 4.}) {
    for (size_t blocks : {24, 80}) {
      std::vector<StageTimes> parts(blocks + 2, part(1, 2));
      parts.front() = part(0.1, 0.2);
      parts.back() = part(head, 2 * head);
      for (int64_t microbatches : {48, 64, 256}) {
        const StagesToCut row = {ScheduleKind::kInterleaved, 8, 4, microbatches};
        EXPECT_LE(makespanOf(parts, cutsForSchedule(parts, row), row),
                  makespanOf(parts, evenCuts(parts, row), row))
            << head << " " << blocks << " " << microbatches;
      }
    }
  }
}

TEST(ScheduleCuts, EvenStagesStayWhereLittleIsSaved) {
  // Uneven ones are found that take 0.2 % less.
  std::vector<StageTimes> parts(34, part(1, 2));
  parts.front() = part(0.05, 0.1);
  parts.back() = part(0.2, 0.4);
  const StagesToCut row = {ScheduleKind::kInterleaved, 8, 4, 64};
  EXPECT_EQ(cutsForSchedule(parts, row), evenCuts(parts, row));
}

TEST(ScheduleCuts, BalancesWhatNoScheduleRuns) {
  // An interleaved schedule needs a multiple of the grids.
  EXPECT_THAT(cutsForSchedule(std::vector<StageTimes>(4, part(1, 1)),
                              {ScheduleKind::kInterleaved, 4, 2, 3}),
              ElementsAre(0, 1, 2, 3));
}

}  // namespace
}  // namespace oriel
