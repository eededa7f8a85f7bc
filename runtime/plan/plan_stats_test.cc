#include "runtime/plan/plan_stats.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/plan/plan_builder.h"

namespace oriel::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

TEST(PlanStats, CountsBytesOfEachKind) {
  const PlanStats stats = ComputePlanStats(SmallTrainingPlan(2, 3));
  EXPECT_EQ(stats.parameters, 4);
  EXPECT_EQ(stats.trainable_parameters, 4);
  ASSERT_EQ(stats.programs.size(), 1u);
  // The two temporaries share 32 bytes.
  EXPECT_THAT(
      stats.programs[0].bytes_by_kind,
      UnorderedElementsAre(Pair("parameter", 16), Pair("gradient", 16), Pair("accumulator", 4),
                           Pair("input", 32), Pair("scalar", 4), Pair("constant", 4),
                           Pair("stash", 32), Pair("temporary", 32), Pair("output", 36)));
  EXPECT_EQ(stats.programs[0].buffers_by_kind.at("temporary"), 2);
}

TEST(PlanStats, CountsPerStep) {
  const PlanStats stats = ComputePlanStats(SmallTrainingPlan(2, 3));
  const ProgramStats& program = stats.programs[0];
  ASSERT_EQ(program.segments.size(), 4u);
  EXPECT_EQ(program.segments[0].runs_per_step, 3);
  EXPECT_THAT(program.segments[0].kernels,
              ElementsAre(Pair("test_add_sum", 1), Pair("test_multiply", 2)));
  EXPECT_EQ(program.segments[2].collectives, 1);
  EXPECT_EQ(program.segments[2].collective_bytes, 20);
  EXPECT_EQ(program.segments[3].runs_per_step, 0);
  EXPECT_EQ(program.collective_bytes_per_step, 20);
  EXPECT_EQ(program.instructions_per_step, 3 * 3 + 3 * 2 + 5);
}

TEST(PlanStats, ViewOfAParameterIsNoTemporary) {
  PlanBuilder builder(1);
  const int w = builder.Parameter("w", {DType::kF32, {4}});
  builder.Alias(plan::TEMPORARY, "view", {DType::kF32, {2, 2}},
                builder.program().buffers(w).offset());
  EXPECT_EQ(ComputePlanStats(builder.plan()).programs[0].bytes_by_kind.count("temporary"), 0u);
}

}  // namespace
}  // namespace oriel::runtime
