#include "runtime/exec/dead_memory.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/plan/plan_builder_testing.h"
#include "runtime/plan/two_stage_plan_testing.h"

namespace oriel::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// "buffer behind instruction"; a buffer that others of the memory come after is none of them.
std::vector<std::string> DeadIn(const plan::Program& program, int segment, int64_t microbatch) {
  const DeadMemory memory(program);
  std::vector<std::string> texts;
  for (const DeadBytes& dead : memory.In(segment, microbatch)) {
    for (const auto& buffer : program.buffers()) {
      if (OffsetOf(buffer, microbatch) != dead.bytes.begin) continue;
      texts.push_back(buffer.name() + " " + std::to_string(dead.instruction));
      break;
    }
  }
  return texts;
}

TEST(DeadMemory, DiesBehindTheLastReader) {
  const plan::Plan plan = SmallTrainingPlan(1, 2);
  const plan::Program& program = plan.programs(0);
  // squares and product are in the same memory. h is handed on.
  EXPECT_THAT(DeadIn(program, 0, 1), ElementsAre("squares 2", "batch_loss 3"));
  EXPECT_THAT(DeadIn(program, 1, 0), ElementsAre("h 0", "squares 1", "batch_dw 2"));
  EXPECT_THAT(DeadIn(program, 1, 1), DeadIn(program, 1, 0));
}

// Which is when the next run begins: here that of the next step, or of the next evaluation.
TEST(DeadMemory, OutputsAreDeadWhenTheNextRunBegins) {
  const plan::Plan plan = SmallTrainingPlan(1, 1);
  EXPECT_THAT(DeadIn(plan.programs(0), 0, 0), ElementsAre("loss -1", "squares 2", "batch_loss 3"));
  EXPECT_THAT(DeadIn(plan.programs(0), 2, 0), IsEmpty());
  EXPECT_THAT(DeadIn(plan.programs(0), 3, 0), ElementsAre("h -1"));
}

TEST(DeadMemory, WhatIsWrittenOverIsNotDead) {
  PlanBuilder builder(1);
  const TensorSpec row{DType::kF32, {4}};
  const int t = builder.Buffer(plan::TEMPORARY, "t", row);
  const int out = builder.Buffer(plan::OUTPUT, "y", row);
  builder.Segment("forward");
  builder.FillZero(t);
  builder.Launch("test_add", {t, t}, {t});
  builder.Copy(t, out);
  builder.Entry("forward", 0);
  EXPECT_THAT(DeadIn(builder.program(), 0, 0), ElementsAre("y -1", "t 2"));
}

// What was sent may be on its way; what was received is dead behind its reader.
TEST(DeadMemory, MessagesAreNotTouchedOnTheirWay) {
  const plan::Plan plan = TwoStagePlan({{1, 1}, 4, 3, 2, false});
  EXPECT_THAT(DeadIn(plan.programs(0), 0, 1), IsEmpty());
  EXPECT_THAT(DeadIn(plan.programs(0), 0, 2), ElementsAre("h -1"));
  EXPECT_THAT(DeadIn(plan.programs(0), 1, 0), ElementsAre("dh 1", "product 2", "batch_dw 3"));
}

TEST(DeadMemory, AtStartNothingIsKeptButState) {
  PlanBuilder builder(1);
  builder.Parameter("w", {DType::kF32, {16}});
  builder.Buffer(plan::TEMPORARY, "t", {DType::kF32, {16}});
  builder.Buffer(plan::GRADIENT, "w", {DType::kF32, {16}});
  builder.Ring(plan::STASH, "s", {DType::kF32, {16}}, 2);
  EXPECT_THAT(DeadMemory(builder.program()).AtStart(),
              ElementsAre(ByteRange{64, 128}, ByteRange{192, 320}));
}

}  // namespace
}  // namespace oriel::runtime
