#include "runtime/plan/rank_processes.h"

#include <gtest/gtest.h>

#include "runtime/plan/plan_builder_testing.h"

namespace oriel::runtime {
namespace {

TEST(RankProcesses, AreTheRanksByDefault) {
  PlanBuilder builder(2);
  builder.AddGrid(2);
  EXPECT_TRUE(AreRanksProcesses(builder.plan()));
  EXPECT_EQ(ProcessesOfRanks(builder.plan()), (std::vector<int64_t>{0, 1, 2, 3}));
}

TEST(RankProcesses, BlocksOfEachGridInTurn) {
  PlanBuilder builder(4);
  builder.AddGrid(4);
  builder.plan().set_placement_block(2);
  EXPECT_FALSE(AreRanksProcesses(builder.plan()));
  EXPECT_EQ(ProcessesOfRanks(builder.plan()), (std::vector<int64_t>{0, 1, 4, 5, 2, 3, 6, 7}));
  builder.plan().set_placement_block(1);
  EXPECT_EQ(ProcessesOfRanks(builder.plan()), (std::vector<int64_t>{0, 2, 4, 6, 1, 3, 5, 7}));
}

}  // namespace
}  // namespace oriel::runtime
