#include "passes/cost/link_time.h"

#include <gtest/gtest.h>

namespace oriel {
namespace {

// Nodes of four devices.
std::vector<LinkLevel> twoLevels() {
  LinkLevel node, network;
  node.devices = 4;
  node.bandwidth = 100e9;
  node.latency = 1e-6;
  network.devices = 16;
  network.bandwidth = 10e9;
  network.latency = 1e-5;
  return {node, network};
}

constexpr double kBytes = 1e9;

TEST(LinkTimeTest, TheNarrowestLevelSetsTheTime) {
  const auto seconds = [](const std::vector<int64_t>& ranks) {
    return linkSeconds(twoLevels(), ranks, LinkUse::kGather, kBytes);
  };
  EXPECT_NEAR(seconds({0, 1, 2, 3}), kBytes / (0.8 * 100e9), 1e-5);
  // One of each node: the device's own link to the network.
  EXPECT_NEAR(seconds({0, 4, 8, 12}), kBytes / (0.8 * 10e9), 1e-4);
  // Two of each share both links.
  EXPECT_NEAR(seconds({0, 1, 4, 5}), kBytes / (0.8 * 20e9), 1e-4);
  EXPECT_EQ(seconds({0}), 0);
}

TEST(LinkTimeTest, AnAllReduceSendsPartsBetweenNodes) {
  // Of eight ranks on two nodes: 4/7 of a ring's bytes cross the network's half of the links.
  const double sent = 2 * kBytes * 7 / 8;
  const double seconds =
      linkSeconds(twoLevels(), {0, 1, 2, 3, 4, 5, 6, 7}, LinkUse::kAllReduce, sent);
  EXPECT_NEAR(seconds, 2 * (kBytes / 4) / 2 / (0.8 * 10e9), 1e-4);
  EXPECT_LT(seconds, linkSeconds(twoLevels(), {0, 1, 2, 3, 4, 5, 6, 7}, LinkUse::kGather, sent));
}

TEST(LinkTimeTest, StepsTakeTheLatencyOfTheirLevel) {
  // Three steps of a ring of four in a tree's two; an all-reduce goes twice.
  EXPECT_DOUBLE_EQ(linkSeconds(twoLevels(), {0, 1, 2, 3}, LinkUse::kGather, 0), 2e-6);
  EXPECT_DOUBLE_EQ(linkSeconds(twoLevels(), {0, 4}, LinkUse::kAllReduce, 0), 2e-5);
  EXPECT_DOUBLE_EQ(linkSeconds(twoLevels(), {0, 1, 4, 5}, LinkUse::kGather, 0), 1.1e-5);
  EXPECT_DOUBLE_EQ(linkSeconds(twoLevels(), {0, 4}, LinkUse::kTransfer, 0), 1e-5);
  std::vector<LinkLevel> rings = twoLevels();
  rings[0].ring = true;
  EXPECT_DOUBLE_EQ(linkSeconds(rings, {0, 1, 2, 3}, LinkUse::kGather, 0), 3e-6);
}

TEST(LinkTimeTest, GroupsShareWhatADomainHas) {
  std::vector<LinkLevel> levels = twoLevels();
  levels[1].oversubscription = 4;  // one link for the node
  const auto seconds = [&](int64_t groups) {
    return linkSeconds(levels, {0, 4}, LinkUse::kTransfer, kBytes, groups);
  };
  EXPECT_NEAR(seconds(1), kBytes / (0.8 * 10e9), 1e-4);
  EXPECT_NEAR(seconds(2), 2 * seconds(1), 1e-4);
  EXPECT_DOUBLE_EQ(seconds(4), seconds(0));  // all devices of the node
}

TEST(LinkTimeTest, SwitchesThatSumTakeEachRankOnce) {
  std::vector<LinkLevel> levels = twoLevels();
  levels[0].reduces = 0.6;
  const std::vector<int64_t> node = {0, 1, 2, 3};
  EXPECT_NEAR(linkSeconds(levels, node, LinkUse::kAllReduce, 1.5 * kBytes), kBytes / (0.6 * 100e9),
              1e-5);
  // Of two ranks a ring is as good.
  EXPECT_NEAR(linkSeconds(levels, {0, 1}, LinkUse::kAllReduce, kBytes), kBytes / (0.8 * 100e9),
              1e-5);
}

TEST(LinkTimeTest, PairsWithoutASwitch) {
  std::vector<LinkLevel> levels = twoLevels();
  levels[0].pair = 30e9;
  const auto rate = [&](const std::vector<int64_t>& ranks, LinkUse use) {
    return kBytes / linkSeconds(levels, ranks, use, kBytes) / 0.8;
  };
  EXPECT_NEAR(rate({0, 1}, LinkUse::kGather), 30e9, 1e8);
  EXPECT_NEAR(rate({0, 1, 2, 3}, LinkUse::kGather), 60e9, 1e8);
  EXPECT_NEAR(rate({0, 1, 2, 3}, LinkUse::kExchange), 30e9, 1e8);
}

TEST(LinkTimeTest, SmallMessagesDoWithoutTheRamp) {
  std::vector<LinkLevel> levels = twoLevels();
  levels[0].ramp = 60e-6;
  const std::vector<int64_t> node = {0, 1, 2, 3};
  EXPECT_DOUBLE_EQ(linkSeconds(levels, node, LinkUse::kGather, 0), 2e-6);
  EXPECT_NEAR(linkSeconds(levels, node, LinkUse::kGather, kBytes), kBytes / (0.8 * 100e9) + 62e-6,
              1e-9);
  double last = 0;
  for (double bytes = 1; bytes < 1e10; bytes *= 2) {
    const double seconds = linkSeconds(levels, node, LinkUse::kGather, bytes);
    EXPECT_GT(seconds, last);
    last = seconds;
  }
}

}  // namespace
}  // namespace oriel
