#include "passes/lower/arena_planner.h"

#include <random>

#include "gtest/gtest.h"

namespace oriel {
namespace {

TEST(ArenaPlannerTest, BlocksInUseAtDifferentTimesShareBytes) {
  ArenaLayout layout = planArena({{0, 3, 256}, {2, 5, 64}, {4, 6, 256}});
  EXPECT_EQ(layout.offsets[0], layout.offsets[2]);
  EXPECT_EQ(layout.bytes, 256 + 64);
  EXPECT_EQ(layout.lowerBound, 256 + 64);
}

TEST(ArenaPlannerTest, EndIsIncluded) {
  ArenaLayout layout = planArena({{0, 1, 64}, {1, 2, 64}});
  EXPECT_NE(layout.offsets[0], layout.offsets[1]);
}

TEST(ArenaPlannerTest, EmptyBlocksTakeNothing) {
  EXPECT_EQ(planArena({}).bytes, 0);
  EXPECT_EQ(planArena({{0, 9, 0}}).bytes, 0);
}

TEST(ArenaPlannerTest, RandomLifetimesNeverOverlap) {
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    std::vector<ArenaBlock> blocks;
    for (int i = 0; i < 100; ++i) {
      int64_t begin = static_cast<int64_t>(random() % 200);
      blocks.push_back({begin, begin + static_cast<int64_t>(random() % 30),
                        static_cast<int64_t>(random() % 5000)});
    }
    ArenaLayout layout = planArena(blocks);
    EXPECT_GE(layout.bytes, layout.lowerBound);
    EXPECT_LE(layout.bytes, layout.lowerBound * 5 / 4);
    for (size_t i = 0; i < blocks.size(); ++i) {
      EXPECT_EQ(layout.offsets[i] % kArenaAlignment, 0);
      for (size_t j = 0; j < i; ++j) {
        bool sameTime = blocks[i].begin <= blocks[j].end && blocks[j].begin <= blocks[i].end;
        bool sameBytes = layout.offsets[i] < layout.offsets[j] + blocks[j].bytes &&
                         layout.offsets[j] < layout.offsets[i] + blocks[i].bytes;
        EXPECT_FALSE(sameTime && sameBytes && blocks[i].bytes > 0 && blocks[j].bytes > 0);
      }
    }
  }
}

// Two values of two copies each, which microbatches use in turn: one from tick 0 to 4 of a run, the
// other from 5 to 9; the copies of either lie where those of the other do.
TEST(ArenaPlannerTest, CopiesTakeTurns) {
  auto copy = [](int64_t begin, int64_t end, std::vector<TimeSpan> among) {
    ArenaBlock block = {begin, end, 64};
    block.isStash = true;
    block.copy = {{{begin, end}}, std::move(among)};
    return block;
  };
  std::vector<ArenaBlock> blocks = {copy(0, 4, {{0, 4}, {20, 24}}), copy(0, 4, {{10, 14}}),
                                    copy(5, 9, {{5, 9}, {25, 29}}), copy(5, 9, {{15, 19}})};
  EXPECT_EQ(planArena(blocks, {/*lowerBound=*/64}).bytes, 64);
  // The first microbatch goes on while the second one runs.
  blocks[2].copy->among = {{5, 14}};
  ArenaLayout layout = planArena(blocks, {/*lowerBound=*/128});
  EXPECT_EQ(layout.bytes, 128);
  EXPECT_NE(layout.offsets[1], layout.offsets[2]);
  // A value of the segment lies beside all copies that are in use in any of its runs.
  blocks.push_back({3, 5, 64});
  EXPECT_EQ(planArena(blocks, {/*lowerBound=*/128}).bytes, 192);
}

TEST(ArenaPlannerTest, CopyThatIsNeverInUseIsInNobodysWay) {
  std::vector<ArenaBlock> blocks(3, ArenaBlock{0, 9, 64});
  blocks[0].copy = {{{0, 9}}, {{0, 9}}};
  blocks[1].copy.emplace();
  const ArenaLayout layout = planArena(blocks);
  EXPECT_EQ(layout.bytes, 128);
  EXPECT_NE(layout.offsets[0], layout.offsets[2]);
}

TEST(ArenaPlannerTest, RandomCopiesNeverOverlap) {
  std::mt19937 random(11);
  auto spans = [&](int64_t within) {
    std::vector<TimeSpan> result;
    for (auto at = static_cast<int64_t>(random() % 40); at < within;) {
      result.push_back({at, at + static_cast<int64_t>(random() % 15)});
      at = result.back().end + 2 + static_cast<int64_t>(random() % 100);
    }
    return result;
  };
  auto overlap = [](const std::vector<TimeSpan>& a, const std::vector<TimeSpan>& b) {
    for (const TimeSpan& x : a) {
      for (const TimeSpan& y : b) {
        if (x.begin <= y.end && y.begin <= x.end) return true;
      }
    }
    return false;
  };
  for (int round = 0; round < 20; ++round) {
    std::vector<ArenaBlock> blocks;
    for (int i = 0; i < 150; ++i) {
      auto begin = static_cast<int64_t>(random() % 100);
      blocks.push_back({begin, begin + static_cast<int64_t>(random() % 20),
                        static_cast<int64_t>(1 + random() % 2000)});
      if (i % 3 > 0) blocks.back().copy = {spans(100), spans(500)};
      blocks.back().isStash = i % 3 == 1;
    }
    const ArenaLayout layout = planArena(blocks);
    for (size_t i = 0; i < blocks.size(); ++i) {
      const ArenaBlock& a = blocks[i];
      EXPECT_LE(layout.offsets[i] + a.bytes, layout.bytes);
      for (size_t j = 0; j < i; ++j) {
        const ArenaBlock& b = blocks[j];
        auto besideOf = [](const ArenaBlock& block) {
          return block.copy ? block.copy->beside : std::vector<TimeSpan>{{block.begin, block.end}};
        };
        const bool sameTime = a.copy && b.copy ? overlap(a.copy->among, b.copy->among)
                                               : overlap(besideOf(a), besideOf(b));
        const bool sameBytes = layout.offsets[i] < layout.offsets[j] + b.bytes &&
                               layout.offsets[j] < layout.offsets[i] + a.bytes;
        EXPECT_FALSE(sameTime && sameBytes);
      }
    }
  }
}

TEST(ArenaPlannerTest, LooksForNothingBetterThanEnough) {
  std::mt19937 random(5);
  int64_t saved = 0;
  for (int round = 0; round < 20; ++round) {
    std::vector<ArenaBlock> blocks;
    for (int i = 0; i < 200; ++i) {
      auto begin = static_cast<int64_t>(random() % 300);
      blocks.push_back({begin, begin + static_cast<int64_t>(random() % 60),
                        static_cast<int64_t>(random() % 5000)});
    }
    const ArenaLayout best = planArena(blocks), any = planArena(blocks, {std::nullopt, 1 << 30});
    EXPECT_LE(best.bytes, any.bytes);
    saved += any.bytes - best.bytes;
    EXPECT_EQ(planArena(blocks, {std::nullopt, 0, any.steps - 1}).bytes, any.bytes);
    EXPECT_LE(any.steps, 200 * 200 / 2);
  }
  EXPECT_GT(saved, 0);
}

TEST(PlanArena, OthersUseWhatAGapLeaves) {
  const std::vector<ArenaBlock> blocks = {{0, 9, 64, 3, 6}, {3, 6, 64}, {6, 7, 64}};
  EXPECT_EQ(peakOf(blocks).bytes, 128);
  const ArenaLayout layout = planArena(blocks);
  EXPECT_EQ(layout.bytes, 128);
  EXPECT_EQ(layout.offsets[0], layout.offsets[1]);
  EXPECT_NE(layout.offsets[0], layout.offsets[2]);
}

}  // namespace
}  // namespace oriel
