// What is known of a candidate from another one, and what it takes at least.
#include "passes/search/bound.h"

#include <random>

#include "gtest/gtest.h"
#include "passes/search/search_testing.h"
#include "passes/stage/schedule_cuts.h"
#include "passes/stage/schedule_cuts_testing.h"

namespace oriel {
namespace {

MicrobatchCost known() {
  MicrobatchCost cost;
  cost.forward = 4;
  cost.backward = 8;
  cost.update = 2;
  cost.parameters = 1000;
  cost.gradients = 2000;
  cost.optimizerState = 6000;
  cost.stash = 600;
  cost.parts = {1, 3};
  return cost;
}

Candidate splitOver(int64_t tp) {
  Candidate candidate;
  candidate.tp = tp;
  return candidate;
}

TEST(LeastCost, MoreRanksShareAllOfIt) {
  const MicrobatchCost cost = leastCost(known(), splitOver(2), splitOver(4));
  EXPECT_EQ(cost.forward, 2);
  EXPECT_EQ(cost.backward, 4);
  EXPECT_EQ(cost.update, 1);
  EXPECT_EQ(cost.parameters, 500);
  EXPECT_EQ(cost.gradients, 1000);
  EXPECT_EQ(cost.optimizerState, 3000);
  EXPECT_EQ(cost.stash, 300);
  EXPECT_TRUE(cost.parts.empty());
}

TEST(LeastCost, PartsOfTheSameLayers) {
  EXPECT_EQ(leastCost(known(), splitOver(2), splitOver(2)).parts, known().parts);
}

// Of 100 parameters two ranks keep 3 whole and share the rest, (3 + 97 / 2) each. Three may share
// all of them.
TEST(LeastCost, OtherRanksMayDivideWhatTheseKeepWhole) {
  MicrobatchCost ofTwo;
  ofTwo.parameters = 100 * (kLittleWhole + (1 - kLittleWhole) / 2);
  ofTwo.forward = ofTwo.stash = ofTwo.parameters;
  const MicrobatchCost ofThree = leastCost(ofTwo, splitOver(2), splitOver(3));
  EXPECT_NEAR(ofThree.parameters, 100. / 3, 1e-9);
  EXPECT_NEAR(ofThree.forward, 100. / 3, 1e-9);
  EXPECT_NEAR(ofThree.stash, 100. / 3, 1e-9);
  // What two ranks don't divide, four don't either: nothing is taken off.
  EXPECT_EQ(leastCost(ofTwo, splitOver(2), splitOver(4)).parameters, ofTwo.parameters / 2);
}

TEST(LeastCost, MoreSamplesAtATimeMayBeFaster) {
  Candidate larger;
  larger.micro = 2;
  const MicrobatchCost cost = leastCost(known(), Candidate(), larger);
  EXPECT_EQ(cost.stash, 1200);
  EXPECT_LT(cost.forward, 8);
  EXPECT_GT(cost.forward, 4);
  EXPECT_EQ(cost.parameters, 1000);
}

TEST(LeastCost, WhatRunsAgainNeedsNoStash) {
  Candidate again;
  again.remat = RematPolicy::kFull;
  const MicrobatchCost cost = leastCost(known(), Candidate(), again);
  EXPECT_EQ(cost.stash, 0);
  EXPECT_GT(cost.backward, 8);
  EXPECT_LE(cost.backward, 12);
}

TEST(Bound, MoreShardsTakeLessMemoryAndLinksTakeTime) {
  const Cluster cluster = TwoLevelCluster(2, 4);
  MicrobatchCost cost;
  cost.forward = 1;
  cost.backward = 2;
  cost.parameters = cost.gradients = 100. * kGiB;
  cost.optimizerState = 300. * kGiB;
  Candidate one;
  one.dp = 8;
  one.microbatches = 4;
  Candidate sharded = one;
  sharded.zero = 3;
  sharded.shards = 8;
  Candidate near = sharded;
  near.shards = 4;
  EXPECT_DOUBLE_EQ(boundOf(one, cost, cluster).bytes, 500. * kGiB);
  EXPECT_DOUBLE_EQ(boundOf(sharded, cost, cluster).bytes, 500. / 8 * kGiB);
  EXPECT_DOUBLE_EQ(boundOf(near, cost, cluster).bytes, 500. / 4 * kGiB);
  EXPECT_GT(boundOf(sharded, cost, cluster).seconds, boundOf(near, cost, cluster).seconds);
  EXPECT_GE(boundOf(near, cost, cluster).seconds, 0.99 * 4 * 3);
}

// Of one microbatch, gradients lie where the backward has read the stash.
TEST(Bound, GradientsOfOneMicrobatchTakeTurnsWithTheStash) {
  const Cluster cluster = TwoLevelCluster(2, 4);
  MicrobatchCost cost;
  cost.forward = cost.backward = 1;
  cost.parameters = cost.gradients = 100. * kGiB;
  cost.stash = 150. * kGiB;
  Candidate one;
  one.dp = 8;
  one.microbatches = 1;
  EXPECT_DOUBLE_EQ(boundOf(one, cost, cluster).bytes, 250. * kGiB);
  one.microbatches = 2;
  EXPECT_DOUBLE_EQ(boundOf(one, cost, cluster).bytes, 350. * kGiB);
}

// Its backward sets gradients; that of which the cost is known adds to them.
TEST(Bound, OneMicrobatchTakesLessThanOneOfSeveral) {
  const Cluster cluster = TwoLevelCluster(2, 4);
  MicrobatchCost cost;
  cost.forward = cost.backward = 1;
  Candidate one;
  one.dp = 8;
  one.microbatches = 1;
  EXPECT_LE(boundOf(one, cost, cluster).seconds, 0.93 * 2);
  one.microbatches = 2;
  EXPECT_GE(boundOf(one, cost, cluster).seconds, 0.99 * 4);
}

TEST(Bound, GradientsOfStagesSideBySideGoOverTheNetwork) {
  const Cluster cluster = TwoLevelCluster(2, 4);
  MicrobatchCost cost;
  cost.forward = 1e-3;
  cost.backward = 2e-3;
  cost.gradients = 8. * kGiB;
  Candidate candidate;
  candidate.pp = 2;
  candidate.dp = 4;
  candidate.microbatches = 8;
  const double near = boundOf(candidate, cost, cluster).seconds;
  candidate.placement = Placement::kDpOutermost;
  const double far = boundOf(candidate, cost, cluster).seconds;
  EXPECT_GT(far, 2 * near);
  cost.gradients = 0;
  // Of 3 ms for a microbatch: all of one, and then 7 backwards with 6 and 7 forwards.
  EXPECT_NEAR(boundOf(candidate, cost, cluster).seconds,
              0.998 * (1 + 1 / (3. / 20 + 1. / 7)) * 3e-3, 1e-9);
}

TEST(Bound, AllWaitForTheBusiestGrid) {
  MicrobatchCost cost;
  cost.forward = 1;
  cost.backward = 2;
  Candidate two;
  two.pp = 2;
  two.microbatches = 4;
  const Cluster cluster = TwoLevelCluster(1, 2);
  // The first one has 3 backwards of 2/3 and 2 forwards of 1/3 left where the second one has 3
  // of each: at best they have 9/17 and 8/17.
  EXPECT_NEAR(boundOf(two, cost, cluster).seconds, 0.998 * (1 + 8. / 3 * 9 / 17) * 3, 1e-9);
  // Of two parts, the second one is four times the first.
  const double runs = leastRuns(two, {1, 4});
  EXPECT_DOUBLE_EQ(runs, 0.2 + 4 * 0.8);
  EXPECT_NEAR(boundOf(two, cost, cluster, runs).seconds, 0.97 * 3 * runs, 0.03);
  two.schedule = ScheduleKind::kZbH1;
  EXPECT_NEAR(boundOf(two, cost, cluster).seconds, (4 + 0.5 / 4) * 1.5, 0.02);
  EXPECT_DOUBLE_EQ(leastRuns(two, {1, 4}), 0.2 / 4 + 4 * 0.8);
}

// Rows of parts of which the first ones may be frozen, and others may have a large backward.
TEST(Bound, IsBelowWhatFoundCutsTake) {
  const Cluster cluster = TwoLevelCluster(1, 8);
  std::mt19937 random(0);
  auto oneOf = [&](auto... values) {
    const std::vector<int64_t> all = {values...};
    return all[random() % all.size()];
  };
  for (int round = 0; round < 300; ++round) {
    Candidate c;
    c.schedule = static_cast<ScheduleKind>(1 + round % 3);
    c.pp = oneOf(2, 3, 4);
    c.interleave = c.schedule == ScheduleKind::kInterleaved ? oneOf(2, 3) : 1;
    c.microbatches = c.pp * oneOf(1, 2, 5, 12) + (c.interleave > 1 ? 0 : random() % 2);
    std::vector<StageTimes> parts(c.pp * c.interleave + random() % 8);
    const bool isEven = random() % 2 == 0;
    const size_t frozen = random() % 2 == 0 ? random() % parts.size() : 0;
    const auto factor = static_cast<double>(oneOf(1, 2, 3));
    MicrobatchCost cost;
    for (size_t i = 0; i < parts.size(); ++i) {
      const double forward = isEven ? 1 : static_cast<double>(1 + random() % 10);
      const double backward = i < frozen ? 0 : factor * forward;
      parts[i] = {forward, backward, backward / 2, backward / 2};
      cost.forward += forward;
      cost.backward += backward;
      cost.parts.push_back(forward + backward);
    }
    const StagesToCut row = {c.schedule, c.pp * c.interleave, c.pp, c.microbatches};
    const double makespan = makespanOf(parts, cutsForSchedule(parts, row), row);
    const Bound bound = boundOf(c, cost, cluster, leastRuns(c, cost.parts));
    EXPECT_LE(bound.seconds, makespan) << round;
    EXPECT_GT(bound.seconds, 0.5 * makespan) << round;
  }
}

TEST(LeastRuns, TheFirstGridsMayHaveMore) {
  Candidate two;
  two.pp = 2;
  two.microbatches = 2;
  // The second one waits for the first: 5 and 5 parts take 5 + 2 * 5, 6 and 4 take 6 + 2 * 4.
  EXPECT_DOUBLE_EQ(leastRuns(two, std::vector<double>(10, 1)), 1.4);
  two.microbatches = 32;
  EXPECT_DOUBLE_EQ(leastRuns(two, std::vector<double>(10, 1)), 0.5 + 32 * 0.5);
  two.interleave = 2;
  EXPECT_DOUBLE_EQ(leastRuns(two, std::vector<double>(10, 1)), 16);
  EXPECT_EQ(leastRuns(two, {}), 0);
}

}  // namespace
}  // namespace oriel
