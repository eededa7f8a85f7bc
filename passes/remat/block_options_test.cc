#include "passes/remat/block_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "passes/remat/option_path.h"

namespace oriel {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A block of random ops behind values from elsewhere; some of its values are read by the backward.
StashGraph randomBlock(unsigned seed) {
  std::mt19937 random(seed);
  auto below = [&](int limit) { return static_cast<int>(random() % limit); };
  StashGraph graph;
  std::vector<int> values = {graph.addValue(0)};
  for (int i = 0; i < 2; ++i) {  // of another block; the first is kept
    StashGraph::Op op;
    op.operands = {values[0]};
    op.results = {graph.addValue(10 + below(40))};
    values.push_back(op.results[0]);
    graph.values[values.back()].stashed = i == 0;
    graph.addOp(op);
  }
  for (int i = 0; i < 7; ++i) {
    StashGraph::Op op;
    op.block = 0;
    op.seconds = (1 + below(50)) * 1e-6;
    op.isFree = below(6) == 0;
    for (int j = 0; j <= below(2); ++j) op.operands.push_back(values[below(values.size())]);
    for (int j = 0; j <= below(5) / 4; ++j) op.results.push_back(graph.addValue(1 + below(60)));
    values.insert(values.end(), op.results.begin(), op.results.end());
    graph.addOp(op);
  }
  for (size_t i = 3; i < values.size(); ++i) {
    StashGraph::Value& value = graph.values[values[i]];
    value.stashed = !graph.ops[value.op].isFree && below(3) > 0;
  }
  return graph;
}

struct Cost {
  int64_t bytes = 0;
  double seconds = 0;
};

// Of what every choice of values to keep costs, whether the backward reads them or not.
std::vector<Cost> allCosts(const StashGraph& graph) {
  std::vector<int> candidates;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const StashGraph::Value& value = graph.values[i];
    const bool isKeptAnyway = value.stashed && graph.ops[value.op].block != 0;
    if (value.op < 0 || isKeptAnyway || graph.ops[value.op].isFree) continue;
    candidates.push_back(static_cast<int>(i));
  }
  std::vector<Cost> costs;
  for (uint64_t chosen = 0; chosen < uint64_t{1} << candidates.size(); ++chosen) {
    std::vector<bool> kept(graph.values.size());
    Cost cost;
    for (size_t i = 0; i < candidates.size(); ++i) {
      if ((chosen >> i & 1) == 0) continue;
      kept[candidates[i]] = true;
      cost.bytes += graph.values[candidates[i]].bytes;
    }
    std::vector<bool> needed(graph.values.size());
    for (size_t i = 0; i < needed.size(); ++i) needed[i] = graph.values[i].stashed;
    bool works = true;
    for (size_t op = graph.ops.size(); op-- > 0;) {
      const StashGraph::Op& node = graph.ops[op];
      bool runs = false;
      for (int result : node.results) runs |= needed[result] && !kept[result];
      if (!runs) continue;
      if (node.block != 0) {
        works &= graph.values[node.results[0]].stashed;
        continue;
      }
      cost.seconds += node.seconds;
      for (int operand : node.operands) needed[operand] = true;
    }
    if (works) costs.push_back(cost);
  }
  return costs;
}

TEST(BlockOptions, AreTheHullOfAllChoices) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    const StashGraph graph = randomBlock(seed);
    const std::vector<BlockOption> options = blockOptions(graph, 0, leafShares(graph));
    const std::vector<Cost> costs = allCosts(graph);
    ASSERT_FALSE(options.empty());
    int64_t least = std::numeric_limits<int64_t>::max();
    for (const Cost& cost : costs) least = std::min(least, cost.bytes);
    EXPECT_EQ(options.back().bytes, least) << seed;
    for (size_t i = 1; i < options.size(); ++i) {
      EXPECT_LT(options[i].bytes, options[i - 1].bytes) << seed;
      EXPECT_GT(options[i].seconds, options[i - 1].seconds) << seed;
      // Nothing is below the line between neighbours.
      const double saved = static_cast<double>(options[i - 1].bytes - options[i].bytes);
      const double slope = (options[i].seconds - options[i - 1].seconds) / saved;
      for (const Cost& cost : costs) {
        const double more = static_cast<double>(cost.bytes - options[i].bytes);
        EXPECT_GE(cost.seconds, options[i].seconds - slope * more - 1e-9) << seed;
      }
    }
    // Each option is one of the choices.
    for (const BlockOption& option : options) {
      EXPECT_TRUE(std::any_of(costs.begin(), costs.end(), [&](const Cost& cost) {
        return cost.bytes == option.bytes && std::abs(cost.seconds - option.seconds) < 1e-9;
      })) << seed;
    }
  }
}

// x (10) -> 4 s -> y (8): the backward reads y. A view of y costs nothing.
TEST(BlockOptions, NothingToGain) {
  StashGraph graph;
  const int x = graph.addValue(10), y = graph.addValue(8);
  StashGraph::Op outer, inner;
  outer.results = {x};
  graph.addOp(outer);
  inner.block = 0;
  inner.operands = {x};
  inner.results = {y};
  inner.seconds = 4;
  graph.addOp(inner);
  graph.values[y].stashed = true;
  const std::vector<BlockOption> options = blockOptions(graph, 0, leafShares(graph));
  ASSERT_EQ(options.size(), 1u);
  EXPECT_THAT(options[0].edit.dropped, IsEmpty());
  EXPECT_EQ(options[0].bytes, 8);
}

// x -> 3 s -> h (8) -> 1 s -> a (8). One half of the backward reads h, the other one a: without
// either, the first op runs in both.
TEST(BlockOptions, HalvesOfABackwardRunWhatTheyNeed) {
  StashGraph graph;
  const int x = graph.addValue(1), h = graph.addValue(8), a = graph.addValue(8);
  const double seconds[] = {3, 1};
  for (int i = 0; i < 2; ++i) {
    StashGraph::Op op;
    op.block = 0;
    op.operands = {i == 0 ? x : h};
    op.results = {i == 0 ? h : a};
    op.seconds = seconds[i];
    graph.addOp(op);
    graph.values[op.results[0]].stashed = true;
    graph.values[op.results[0]].readers = {i};
  }
  const std::vector<BlockOption> options = blockOptions(graph, 0, leafShares(graph));
  ASSERT_EQ(options.size(), 3u);
  EXPECT_THAT(options[1].edit.dropped, ElementsAre(a));
  EXPECT_DOUBLE_EQ(options[1].seconds, 1);  // of h, which is kept
  EXPECT_THAT(timesAgain(graph, options[2].edit), ElementsAre(2, 1));
  EXPECT_DOUBLE_EQ(options[2].seconds, 7);
  EXPECT_EQ(options[2].bytes, 0);
  // One segment that reads both runs it once.
  graph.values[a].readers = {0};
  EXPECT_DOUBLE_EQ(blockOptions(graph, 0, leafShares(graph)).back().seconds, 4);
}

// What two blocks need from elsewhere counts half for each.
TEST(BlockOptions, BlocksShareWhatTheyKeep) {
  StashGraph graph;
  const int x = graph.addValue(10);
  StashGraph::Op outer;
  outer.results = {x};
  graph.addOp(outer);
  for (int block = 0; block < 2; ++block) {
    StashGraph::Op op;
    op.block = block;
    op.operands = {x};
    op.results = {graph.addValue(8)};
    op.seconds = 1;
    graph.addOp(op);
    graph.values[op.results[0]].stashed = true;
  }
  EXPECT_EQ(leafShares(graph)[x], 2);
  EXPECT_EQ(blockOptions(graph, 1, leafShares(graph)).back().bytes, 5);
}

BlockChoice choiceOf(std::vector<std::pair<int64_t, double>> options, int64_t copies = 1) {
  BlockChoice choice;
  choice.copies = copies;
  for (auto [bytes, seconds] : options) choice.options.push_back({{}, bytes, seconds});
  return choice;
}

TEST(OptionPath, TakesTheCheapestBytesFirst) {
  const std::vector<BlockChoice> choices = {choiceOf({{100, 0}, {50, 1}, {20, 4}}),
                                            choiceOf({{100, 0}, {50, 1}, {20, 4}}),
                                            choiceOf({{30, 0}, {10, 4}}, 10)};
  EXPECT_THAT(optionPath(choices),
              ElementsAre(ElementsAre(0, 0, 0), ElementsAre(1, 0, 0), ElementsAre(1, 1, 0),
                          ElementsAre(1, 1, 1), ElementsAre(2, 1, 1), ElementsAre(2, 2, 1)));
  EXPECT_EQ(bytesOf(choices, {1, 0, 1}), 250);
  EXPECT_DOUBLE_EQ(secondsOf(choices, {1, 0, 1}), 5);
}

TEST(OptionPath, LeastSeconds) {
  const std::vector<BlockChoice> choices = {choiceOf({{100, 0}, {50, 1}, {20, 4}}),
                                            choiceOf({{100, 0}, {50, 1}, {20, 4}})};
  EXPECT_EQ(leastSeconds(choices, 200), 0);
  EXPECT_EQ(leastSeconds(choices, 150), 1);
  EXPECT_EQ(leastSeconds(choices, 125), 1.5);  // one and a half of the first steps
  EXPECT_EQ(leastSeconds(choices, 40), 8);
  EXPECT_EQ(leastSeconds(choices, 39), std::nullopt);
}

}  // namespace
}  // namespace oriel
