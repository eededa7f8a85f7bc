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
