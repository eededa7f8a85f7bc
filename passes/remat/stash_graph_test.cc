#include "passes/remat/stash_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace oriel {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Graph : StashGraph {
  // An op of a block that makes one value; returns the value.
  int make(int64_t block, std::vector<int> from, int64_t bytes, Op op = {}) {
    const int value = addValue(bytes);
    op.block = block;
    op.operands = std::move(from);
    op.results = {value};
    op.seconds = 1;
    addOp(std::move(op));
    return value;
  }
  int stash(int value) {
    values[value].stashed = true;
    return value;
  }
};

StashGraph::Op projection() {
  StashGraph::Op op;
  op.projects = true;
  return op;
}

StashGraph::Op contraction() {
  StashGraph::Op op;
  op.contracts = true;
  return op;
}

// x -> norm -> linear -> gelu -> linear -> add with x, twice.
struct TwoBlocks : Graph {
  int input, norm[2], hidden[2], gelu[2], output[2];

  TwoBlocks() {
    input = stash(make(kNone, {addValue(0)}, 10));
    int x = input;
    for (int b = 0; b < 2; ++b) {
      norm[b] = stash(make(b, {x}, 10, projection()));
      hidden[b] = stash(make(b, {norm[b]}, 40, projection()));
      gelu[b] = stash(make(b, {hidden[b]}, 40));
      const int product = make(b, {gelu[b]}, 10, projection());
      x = output[b] = make(b, {x, product}, 10);
    }
    stash(output[0]);
  }
};

TEST(StashGraph, FullKeepsWhatEntersABlock) {
  TwoBlocks graph;
  for (int b = 0; b < 2; ++b) {
    const Recomputation edit = fullRecomputation(graph, b);
    EXPECT_THAT(edit.dropped, ElementsAre(graph.norm[b], graph.hidden[b], graph.gelu[b]));
    EXPECT_THAT(edit.added, IsEmpty());
    // Not the last linear layer, nor the sum.
    EXPECT_DOUBLE_EQ(edit.seconds(graph), 3);
    EXPECT_EQ(edit.savedBytes(graph), 90);
  }
}

TEST(StashGraph, FullAddsWhatEntersABlockAndWasNotKept) {
  TwoBlocks graph;
  graph.values[graph.output[0]].stashed = false;
  const Recomputation edit = fullRecomputation(graph, 1);
  EXPECT_THAT(edit.added, ElementsAre(graph.output[0]));
  EXPECT_EQ(edit.savedBytes(graph), 80);
}

TEST(StashGraph, WhatOtherSegmentsReadStays) {
  TwoBlocks graph;
  graph.values[graph.gelu[0]].pinned = true;
  EXPECT_THAT(fullRecomputation(graph, 0).dropped, ElementsAre(graph.norm[0], graph.hidden[0]));
}

TEST(StashGraph, BlockThatWouldKeepMoreStays) {
  Graph graph;
  const int x = graph.make(0, {graph.addValue(0)}, 10);
  const int small = graph.stash(graph.make(1, {x}, 10));
  graph.make(1, {small}, 10);
  EXPECT_THAT(fullRecomputation(graph, 1).dropped, IsEmpty());
  EXPECT_THAT(fullRecomputation(graph, 1).added, IsEmpty());
}

// Transfers don't run again, and what they bring is kept; a gathered parameter is gathered again.
TEST(StashGraph, LeavesOfWhatRunsAgain) {
  Graph graph;
  StashGraph::Op receive, gather;
  receive.repeats = false;
  gather.isFree = gather.ofParameters = gather.isCollective = true;
  const int x = graph.make(0, {}, 10, receive);
  const int weight = graph.make(7, {graph.addValue(0)}, 1000, gather);
  const int y = graph.stash(graph.make(0, {x, weight}, 40, projection()));
  graph.make(0, {y}, 40);
  const Recomputation edit = fullRecomputation(graph, 0);
  EXPECT_THAT(edit.added, ElementsAre(x));
  EXPECT_THAT(edit.ops, ElementsAre(graph.values[weight].op, graph.values[y].op));
}

// q k -> scores -> softmax -> times v -> projection.
struct Attention : Graph {
  int query, key, value, scores, softmax, context;

  Attention() {
    const int x = stash(make(kNone, {addValue(0)}, 10));
    query = stash(make(0, {x}, 10, projection()));
    key = stash(make(0, {x}, 10, projection()));
    value = stash(make(0, {x}, 10, projection()));
    scores = make(0, {query, key}, 1000, contraction());
    softmax = stash(make(0, {scores}, 1000));
    context = stash(make(0, {softmax, value}, 10, contraction()));
    make(0, {context}, 10, projection());
  }
};

TEST(StashGraph, SelectiveDropsWhatIsBetweenContractions) {
  Attention graph;
  const Recomputation edit = selectiveRecomputation(graph, 0);
  EXPECT_THAT(edit.dropped, ElementsAre(graph.softmax));
  EXPECT_THAT(edit.added, IsEmpty());
  EXPECT_THAT(edit.ops, ElementsAre(graph.values[graph.scores].op, graph.values[graph.softmax].op));
}

// The keys need no gradient: the query was kept for nothing, and the scores need it.
TEST(StashGraph, SelectiveAddsTheOperandsOfTheFirstContraction) {
  Attention graph;
  graph.values[graph.query].stashed = false;
  EXPECT_THAT(selectiveRecomputation(graph, 0).added, ElementsAre(graph.query));
}

TEST(StashGraph, SelectiveReplaysNoCollective) {
  Attention graph;
  graph.ops[graph.values[graph.softmax].op].isCollective = true;
  EXPECT_THAT(selectiveRecomputation(graph, 0).dropped, IsEmpty());
}

// An attention behind another: the way between them is through projections.
TEST(StashGraph, SelectiveGoesThroughNoProjection) {
  Attention graph;
  const int projected = graph.stash(graph.make(0, {graph.context}, 500, projection()));
  const int crossed = graph.make(0, {projected, graph.key}, 10, contraction());
  graph.make(0, {crossed}, 10);
  EXPECT_THAT(selectiveRecomputation(graph, 0).dropped, ElementsAre(graph.softmax));
}

// What is added must be there: the inside of a cluster is not.
TEST(StashGraph, ClustersStayWhole) {
  Attention graph;
  const int bias = graph.make(0, {graph.query}, 5, projection());
  const int scores = graph.make(0, {graph.query, graph.key}, 1000, contraction());
  const int sum = graph.make(0, {scores, bias}, 1000);
  const int probabilities = graph.stash(graph.make(0, {sum}, 1000));
  graph.make(0, {probabilities, graph.value}, 10, contraction());
  EXPECT_THAT(selectiveRecomputation(graph, 0).added, ElementsAre(bias));
  graph.ops[graph.values[bias].op].cluster = graph.ops[graph.values[sum].op].cluster = 3;
  EXPECT_THAT(selectiveRecomputation(graph, 0).dropped, IsEmpty());
}

}  // namespace
}  // namespace oriel
