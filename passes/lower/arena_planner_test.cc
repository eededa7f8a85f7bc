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
  auto copies = [](int64_t begin, int64_t end) {
    return std::vector<ArenaCopy>{{{{begin, end}}, {{begin, end}, {20 + begin, 20 + end}}},
                                  {{{begin, end}}, {{10 + begin, 10 + end}}}};
  };
  ArenaBlock first = {0, 4, 64}, second = {5, 9, 64};
  first.copies = copies(0, 4);
  second.copies = copies(5, 9);
  ArenaLayout layout = planArena({first, second}, /*lowerBound=*/64);
  EXPECT_EQ(layout.bytes, 128);
  EXPECT_EQ(layout.offsets[0], layout.offsets[1]);
  // A value of the segment lies beside all copies that are in use in any of its runs.
  layout = planArena({first, second, {3, 5, 64}}, /*lowerBound=*/64);
  EXPECT_EQ(layout.bytes, 192);
}

TEST(ArenaPlannerTest, RandomCopiesNeverOverlap) {
  std::mt19937 random(11);
  for (int round = 0; round < 20; ++round) {
    std::vector<ArenaBlock> blocks;
    for (int i = 0; i < 60; ++i) {
      auto begin = static_cast<int64_t>(random() % 100);
      blocks.push_back({begin, begin + static_cast<int64_t>(random() % 20),
                        static_cast<int64_t>(1 + random() % 2000)});
      if (i % 2 == 0) continue;
      for (size_t copy = 0; copy < 1 + random() % 3; ++copy) {
        auto at = static_cast<int64_t>(random() % 100),
             among = static_cast<int64_t>(random() % 300);
        blocks.back().copies.push_back({{{at, at + 10}}, {{among, among + 40}}});
      }
    }
    ArenaLayout layout = planArena(blocks);
    auto overlap = [](const std::vector<TimeSpan>& a, const std::vector<TimeSpan>& b) {
      for (const TimeSpan& x : a) {
        for (const TimeSpan& y : b) {
          if (x.begin <= y.end && y.begin <= x.end) return true;
        }
      }
      return false;
    };
    // Each block as its copies, at their offsets.
    struct Placed {
      int64_t low, high;
      bool isCopy;
      std::vector<TimeSpan> beside, among;
    };
    std::vector<std::vector<Placed>> placed;
    for (size_t i = 0; i < blocks.size(); ++i) {
      std::vector<Placed>& of = placed.emplace_back();
      const ArenaBlock& block = blocks[i];
      int64_t at = layout.offsets[i];
      if (block.copies.empty())
        of.push_back({at, at + block.bytes, false, {{block.begin, block.end}}, {}});
      for (const ArenaCopy& copy : block.copies) {
        of.push_back({at, at + block.bytes, true, copy.beside, copy.among});
        at += (block.bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
      }
    }
    for (size_t i = 0; i < placed.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        for (const Placed& a : placed[i]) {
          for (const Placed& b : placed[j]) {
            bool sameTime =
                a.isCopy && b.isCopy ? overlap(a.among, b.among) : overlap(a.beside, b.beside);
            EXPECT_FALSE(sameTime && a.low < b.high && b.low < a.high);
            EXPECT_LE(a.high, layout.bytes);
          }
        }
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
