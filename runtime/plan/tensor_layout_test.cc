#include "runtime/plan/tensor_layout.h"

#include <map>

#include "runtime/base/status_testing.h"
#include "runtime/plan/plan_builder_testing.h"

namespace oriel::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two grids of 2 x 3 x 2 ranks would fit 24 ranks; this is the second.
plan::Grid TestGrid() {
  plan::Grid grid = MakeGrid({2, 3, 2});
  grid.set_first_rank(12);
  return grid;
}

TEST(TensorLayoutTest, ReplicatedTensorIsOwnedByTheFirstRank) {
  ORIEL_ASSERT_OK_AND_ASSIGN(TensorLayout layout, TensorLayout::Create(TestGrid(), {}, {4, 6}));
  EXPECT_TRUE(layout.is_whole());
  for (int64_t rank = 12; rank < 24; ++rank) {
    EXPECT_EQ(layout.BoxOf(rank), WholeBox({4, 6}));
    EXPECT_EQ(layout.Owns(rank), rank == 12);
  }
  EXPECT_THAT(layout.Owners(), ElementsAre(12));
}

// Rank 12 + (i0 * 3 + i1) * 2 + i2 is at (i0, i1, i2).
TEST(TensorLayoutTest, PiecesFollowTheCoordinates) {
  ORIEL_ASSERT_OK_AND_ASSIGN(
      TensorLayout layout,
      TensorLayout::Create(TestGrid(), MakeSharding({{"a1"}, {"a0"}}, {"a2"}), {6, 8}));
  EXPECT_THAT(layout.piece(), ElementsAre(2, 4));
  EXPECT_THAT(layout.partial(), ElementsAre("a2"));
  for (int64_t i0 = 0; i0 < 2; ++i0) {
    for (int64_t i1 = 0; i1 < 3; ++i1) {
      for (int64_t i2 = 0; i2 < 2; ++i2) {
        const int64_t rank = 12 + (i0 * 3 + i1) * 2 + i2;
        EXPECT_EQ(layout.BoxOf(rank), (Box{{i1 * 2, i0 * 4}, {2, 4}}));
        EXPECT_EQ(layout.Owns(rank), i2 == 0);
      }
    }
  }
  EXPECT_THAT(layout.Owners(), ElementsAre(12, 14, 16, 18, 20, 22));
}

TEST(TensorLayoutTest, RanksOfOtherGridsHaveNothing) {
  ORIEL_ASSERT_OK_AND_ASSIGN(TensorLayout layout,
                             TensorLayout::Create(TestGrid(), MakeSharding({{"a0"}}), {4}));
  EXPECT_TRUE(layout.Contains(12));
  EXPECT_TRUE(layout.Owns(18));
  // The coordinates that these would have are those of owners.
  for (const int64_t rank : {0, 6, 24, 30}) {
    EXPECT_FALSE(layout.Contains(rank));
    EXPECT_FALSE(layout.Owns(rank));
    EXPECT_FALSE(layout.Contributes(rank));
  }
}

// Boxes are cut from the padded shape; what files have of them may be nothing.
TEST(TensorLayoutTest, PaddingIsNoContent) {
  ORIEL_ASSERT_OK_AND_ASSIGN(
      TensorLayout layout,
      TensorLayout::CreatePadded(MakeGrid({4}), MakeSharding({{"a0"}}), {5, 3}, {8, 3}));
  EXPECT_THAT(layout.global(), ElementsAre(5, 3));
  EXPECT_THAT(layout.piece(), ElementsAre(2, 3));
  EXPECT_EQ(layout.BoxOf(2), (Box{{4, 0}, {2, 3}}));
  EXPECT_EQ(layout.ContentOf(1), (Box{{2, 0}, {2, 3}}));
  EXPECT_EQ(layout.ContentOf(2), (Box{{4, 0}, {1, 3}}));
  EXPECT_EQ(layout.ContentOf(3).num_elements(), 0);
}

// Of two groups of three, each padded to four, over four ranks.
TEST(TensorLayoutTest, PaddingBehindGroups) {
  ORIEL_ASSERT_OK_AND_ASSIGN(TensorLayout layout,
                             TensorLayout::CreatePadded(MakeGrid({4}), MakeSharding({{}, {"a0"}}),
                                                        {5, 6}, {5, 8}, {1, 2}));
  EXPECT_THAT(layout.piece(), ElementsAre(5, 2));
  EXPECT_EQ(layout.ContentOf(0), (Box{{0, 0}, {5, 2}}));
  EXPECT_EQ(layout.ContentOf(1), (Box{{0, 2}, {5, 1}}));
  EXPECT_EQ(layout.ContentOf(2), (Box{{0, 3}, {5, 2}}));
  EXPECT_EQ(layout.BoxOf(3), (Box{{0, 5}, {5, 2}}));
  EXPECT_EQ(layout.ContentOf(3), (Box{{0, 5}, {5, 1}}));
  ORIEL_ASSERT_OK_AND_ASSIGN(const TensorLayout part, layout.PartOf({5, 9}, {0, 2}));
  EXPECT_EQ(part.ContentOf(1), (Box{{0, 4}, {5, 1}}));
  EXPECT_EQ(part.ContentOf(2), (Box{{0, 5}, {5, 2}}));
}

TEST(TensorLayoutTest, GroupsAreOnRanksOfTheirOwn) {
  const auto pad = [](const plan::Sharding& sharding, const Shape& padded, const Shape& groups) {
    return TensorLayout::CreatePadded(MakeGrid({3}), sharding, {6}, padded, groups).status();
  };
  ORIEL_EXPECT_OK(pad(MakeSharding({{"a0"}}), {9}, {3}));
  const auto is_refused =
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("does not have groups"));
  EXPECT_THAT(pad({}, {9}, {3}), is_refused);
  EXPECT_THAT(pad(MakeSharding({{"a0"}}), {12}, {2}), is_refused);
  EXPECT_THAT(pad(MakeSharding({{"a0"}}), {9}, {0}), is_refused);
  EXPECT_THAT(pad(MakeSharding({{"a0"}}), {9}, {3, 1}), is_refused);
}

TEST(TensorLayoutTest, PaddingIsBehindTheEnd) {
  const auto pad = [](const Shape& padded) {
    return TensorLayout::CreatePadded(MakeGrid({4}), {}, {5, 3}, padded).status();
  };
  ORIEL_EXPECT_OK(pad({8, 3}));
  for (const Shape& padded : {Shape{4, 3}, Shape{8}, Shape{8, 3, 1}}) {
    EXPECT_THAT(pad(padded), StatusIs(absl::StatusCode::kInvalidArgument,
                                      HasSubstr("the shape [5, 3] can't be padded to")));
  }
}

// Boxes of a part are those of the whole tensor.
TEST(TensorLayoutTest, PartsHaveBoxesOfTheWhole) {
  ORIEL_ASSERT_OK_AND_ASSIGN(
      const TensorLayout own,
      TensorLayout::Create(MakeGrid({2, 2}), MakeSharding({{}, {"a1"}}), {3, 4}));
  ORIEL_ASSERT_OK_AND_ASSIGN(const TensorLayout part, own.PartOf({3, 10}, {0, 6}));
  EXPECT_THAT(part.global(), ElementsAre(3, 10));
  EXPECT_THAT(part.piece(), ElementsAre(3, 2));
  EXPECT_EQ(part.BoxOf(0), (Box{{0, 6}, {3, 2}}));
  EXPECT_EQ(part.BoxOf(1), (Box{{0, 8}, {3, 2}}));
  EXPECT_EQ(part.ContentOf(1), part.BoxOf(1));
  EXPECT_THAT(part.Owners(), ElementsAre(0, 1));
  ORIEL_ASSERT_OK_AND_ASSIGN(const TensorLayout on_one_rank,
                             TensorLayout::Create(MakeGrid({1}), {}, {3, 4}));
  ORIEL_ASSERT_OK_AND_ASSIGN(const TensorLayout half, on_one_rank.PartOf({6, 4}, {3, 0}));
  EXPECT_FALSE(half.is_whole());
}

TEST(TensorLayoutTest, PartsLieInTheWhole) {
  ORIEL_ASSERT_OK_AND_ASSIGN(const TensorLayout own,
                             TensorLayout::Create(MakeGrid({2}), {}, {3, 4}));
  const auto part = [&](const Shape& whole, const Shape& start) {
    return own.PartOf(whole, start).status();
  };
  ORIEL_EXPECT_OK(part({3, 4}, {0, 0}));
  for (const Shape& start : {Shape{0, 5}, Shape{0, -1}, Shape{1, 0}, Shape{0}}) {
    EXPECT_THAT(part({3, 8}, start), StatusIs(absl::StatusCode::kInvalidArgument,
                                              HasSubstr("no part of the shape [3, 4] begins at")));
  }
  EXPECT_FALSE(part({3, 4, 1}, {0, 0, 0}).ok());
}

// Each summand of a pending sum counts once, of what is the same on several ranks one.
TEST(TensorLayoutTest, SummandsContribute) {
  ORIEL_ASSERT_OK_AND_ASSIGN(TensorLayout layout,
                             TensorLayout::Create(TestGrid(), MakeSharding({{"a0"}}, {"a2"}), {6}));
  for (int64_t rank = 12; rank < 24; ++rank) {
    const int64_t i1 = (rank - 12) / 2 % 3, i2 = (rank - 12) % 2;
    EXPECT_EQ(layout.Contributes(rank), i1 == 0);
    EXPECT_EQ(layout.Owns(rank), i1 == 0 && i2 == 0);
  }
}

// The order of a dimension's axes is that of the sharding, not of the grid.
TEST(TensorLayoutTest, SeveralAxesOfADimensionAreOutermostFirst) {
  ORIEL_ASSERT_OK_AND_ASSIGN(TensorLayout layout,
                             TensorLayout::Create(TestGrid(), MakeSharding({{"a2", "a0"}}), {8}));
  for (int64_t rank = 12; rank < 24; ++rank) {
    const int64_t i0 = (rank - 12) / 6, i2 = (rank - 12) % 2;
    EXPECT_THAT(layout.BoxOf(rank).start, ElementsAre((i2 * 2 + i0) * 2));
  }
  EXPECT_THAT(layout.Owners(), ElementsAre(12, 13, 18, 19));
}

// The owners' boxes cover the tensor, each element once.
TEST(TensorLayoutTest, EachElementHasOneOwner) {
  const plan::Sharding shardings[] = {
      MakeSharding({}),
      MakeSharding({{"a0", "a1", "a2"}}),
      MakeSharding({{}, {"a1"}}),
      MakeSharding({{"a2"}, {"a1"}, {"a0"}}),
      MakeSharding({{"a1"}, {}, {"a2", "a0"}}),
  };
  const Shape shape = {12, 6, 4};
  for (const plan::Sharding& sharding : shardings) {
    ORIEL_ASSERT_OK_AND_ASSIGN(TensorLayout layout,
                               TensorLayout::Create(TestGrid(), sharding, shape));
    std::map<int64_t, int> seen;
    std::vector<int64_t> owners;
    for (int64_t rank = 12; rank < 24; ++rank) {
      if (!layout.Owns(rank)) continue;
      owners.push_back(rank);
      const BoxRuns runs(WholeBox(shape), layout.BoxOf(rank));
      for (int64_t i = 0; i < runs.count(); ++i) {
        for (int64_t j = 0; j < runs.length(); ++j) ++seen[runs[i].a + j];
      }
    }
    EXPECT_EQ(owners, layout.Owners());
    EXPECT_EQ(seen.size(), static_cast<size_t>(NumElements(shape)));
    for (const auto& [index, count] : seen) EXPECT_EQ(count, 1) << index;
  }
}

TEST(TensorLayoutTest, PendingMaximum) {
  plan::Sharding sharding = MakeSharding({{"a0"}});
  sharding.add_partial_max("a1");
  ORIEL_ASSERT_OK_AND_ASSIGN(TensorLayout layout,
                             TensorLayout::Create(TestGrid(), sharding, {4, 6}));
  EXPECT_TRUE(layout.is_pending());
  EXPECT_TRUE(layout.partial().empty());
  EXPECT_FALSE(SameSharding(sharding, MakeSharding({{"a0"}})));
  sharding.add_partial_max("a0");
  EXPECT_THAT(TensorLayout::Create(TestGrid(), sharding, {4, 6}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the axis 'a0' twice")));
}

TEST(TensorLayoutTest, SaysWhatDoesNotFit) {
  const std::pair<plan::Sharding, const char*> bad[] = {
      {MakeSharding({{"a7"}}), "its sharding names the axis 'a7', which the grid does not have"},
      {MakeSharding({{"a0", "a0"}}), "its sharding uses the axis 'a0' twice"},
      {MakeSharding({{"a0"}, {"a0"}}), "its sharding uses the axis 'a0' twice"},
      {MakeSharding({{"a0"}}, {"a0"}), "its sharding uses the axis 'a0' twice"},
      {MakeSharding({}, {"a0", "a0"}), "its sharding uses the axis 'a0' twice"},
      {MakeSharding({{"a0", "a2", "a1"}}),
       "dimension 0 of size 4 does not divide over the axis 'a1' of size 3"},
      {MakeSharding({{}, {}, {}}), "its sharding has more dimensions than its shape"},
      {MakeSharding({}, {"a7"}), "it is partial over the axis 'a7'"},
  };
  for (const auto& [sharding, message] : bad) {
    EXPECT_THAT(TensorLayout::Create(TestGrid(), sharding, {4, 6}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  }
}

TEST(SameShardingTest, EmptyDimensionsAtTheEndDoNotMatter) {
  EXPECT_TRUE(SameSharding(MakeSharding({{"a0"}, {}}), MakeSharding({{"a0"}})));
  EXPECT_TRUE(SameSharding(MakeSharding({}, {"a0", "a1"}), MakeSharding({{}}, {"a1", "a0"})));
  EXPECT_FALSE(SameSharding(MakeSharding({{"a0"}}), MakeSharding({{}, {"a0"}})));
  EXPECT_FALSE(SameSharding(MakeSharding({{"a0", "a1"}}), MakeSharding({{"a1", "a0"}})));
  EXPECT_FALSE(SameSharding(MakeSharding({}, {"a0"}), MakeSharding({})));
}

}  // namespace
}  // namespace oriel::runtime
