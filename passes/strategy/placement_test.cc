#include "passes/strategy/placement.h"

#include <gtest/gtest.h>

#include <vector>

namespace oriel {
namespace {

std::vector<int64_t> placesOf(const RankPlaces& places, int64_t ranks) {
  std::vector<int64_t> all;
  for (int64_t rank = 0; rank < ranks; ++rank) all.push_back(places.of(rank));
  return all;
}

TEST(RankPlaces, BlocksOfEachGridInTurn) {
  EXPECT_EQ(placesOf({2, 4, 2}, 8), (std::vector<int64_t>{0, 1, 4, 5, 2, 3, 6, 7}));
  EXPECT_EQ(placesOf({3, 2, 1}, 6), (std::vector<int64_t>{0, 3, 1, 4, 2, 5}));
}

TEST(RankPlaces, AreTheRanksOfOneGridAndOfWholeBlocks) {
  EXPECT_EQ(placesOf({}, 3), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(placesOf({1, 4, 2}, 4), (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(placesOf({2, 2, 2}, 4), (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_TRUE((RankPlaces{2, 2, 2}.areRanks()));
  EXPECT_FALSE((RankPlaces{2, 4, 2}.areRanks()));
}

TEST(RankPlaces, TheRankAtAPlace) {
  for (const RankPlaces& places : {RankPlaces{}, RankPlaces{4, 6, 2}, RankPlaces{3, 5, 1}}) {
    for (int64_t rank = 0; rank < places.grids * places.ranks; ++rank) {
      EXPECT_EQ(places.rankAt(places.of(rank)), rank);
    }
  }
}

TEST(PlacementName, IsWhatIsRead) {
  for (const Placement placement : {Placement::kPpOutermost, Placement::kDpOutermost}) {
    EXPECT_EQ(*parsePlacement(placementName(placement)), placement);
  }
  EXPECT_EQ(parsePlacement("dp_outmost").status().message(),
            "there is no placement 'dp_outmost'; did you mean 'dp_outermost'?");
}

}  // namespace
}  // namespace oriel
