// What is known of a candidate from another one.
#include "passes/search/bound.h"

#include "gtest/gtest.h"

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

}  // namespace
}  // namespace oriel
