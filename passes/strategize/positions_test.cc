#include "passes/strategize/positions.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace oriel {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Of 4 samples, positions, 2 heads of keys with 6 of queries each, and depth.
const WholePositions& heads() {
  static const auto* dims = new WholePositions{{4}, {}, {2, 6}, {}};
  return *dims;
}

TEST(PartsOf, OneDimensionForAllRanks) {
  const RankParts samples = partsOf(4, heads(), {1, 1, 1, 1});
  EXPECT_EQ(samples.pieces, 4);
  EXPECT_THAT(samples.outer, IsEmpty());
  const RankParts keys = partsOf(2, heads(), {4, 1, 1, 1});
  EXPECT_EQ(keys.pieces, 2);
  EXPECT_THAT(keys.outer, IsEmpty());
}

TEST(PartsOf, RanksWithTheSameKeysHaveOtherQueries) {
  const RankParts parts = partsOf(12, heads(), {4, 1, 1, 1});
  EXPECT_EQ(parts.pieces, 12);
  EXPECT_THAT(parts.outer, ElementsAre(2));
}

TEST(PartsOf, WhatOtherRanksHaveIsTaken) {
  // Tensor parallelism has taken the keys and half of their queries.
  const RankParts parts = partsOf(3, heads(), {4, 1, 4, 1});
  EXPECT_EQ(parts.pieces, 3);
  EXPECT_THAT(parts.outer, IsEmpty());
}

TEST(PartsOf, RanksWithoutAPieceRepeat) {
  const RankParts some = partsOf(8, heads(), {4, 1, 1, 1});
  EXPECT_EQ(some.pieces, 4);
  EXPECT_THAT(some.outer, ElementsAre(2, 4));
  const RankParts none = partsOf(5, heads(), {1, 1, 1, 1});
  EXPECT_EQ(none.pieces, 1);
  EXPECT_THAT(none.outer, IsEmpty());
}

TEST(PartsOf, InnerFactorsAreCutBehindSingleElements) {
  // Three of six samples: the queries of a key stay together.
  const RankParts parts = partsOf(9, {{6, 9}}, {1});
  EXPECT_EQ(parts.pieces, 3);
  EXPECT_THAT(parts.outer, ElementsAre(3));
}

}  // namespace
}  // namespace oriel
