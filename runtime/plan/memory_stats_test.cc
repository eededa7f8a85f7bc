#include "runtime/plan/memory_stats.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/plan/lifetimes.h"
#include "runtime/plan/plan_builder_testing.h"
#include "runtime/plan/two_stage_plan_testing.h"

namespace oriel::runtime {
namespace {

using ::testing::ElementsAre;

// Buffers of so many floats, which take that rounded up to 16.
TensorSpec Floats(int64_t count) { return {DType::kF32, {count}}; }

int64_t SumOfParts(const MemoryStats& stats) {
  int64_t sum = 0;
  for (const auto& [unused, bytes] : stats.parts) sum += bytes;
  return sum;
}

std::vector<std::string> LivesOf(const plan::Program& program, const Lifetimes& lifetimes) {
  std::vector<std::string> texts;
  for (const Life& life : lifetimes.lives) {
    texts.push_back(program.buffers(life.buffer).name() + " " + std::to_string(life.begin) + "-" +
                    std::to_string(life.end));
  }
  return texts;
}

// Times of forward: 0 before it, 1 to 4 its instructions, 5 behind it; of backward from 6 on.
TEST(Lifetimes, LastFromTheWriterToTheLastReader) {
  const plan::Plan plan = SmallTrainingPlan(1, 1);
  const Lifetimes lifetimes = LifetimesOfStep(plan.programs(0));
  ASSERT_EQ(lifetimes.runs.size(), 3u);
  EXPECT_EQ(lifetimes.runs[1].start, 6);
  EXPECT_EQ(lifetimes.runs[1].finish, 10);
  // The loss is read by the host behind the update, whose second instruction writes it.
  EXPECT_THAT(LivesOf(plan.programs(0), lifetimes),
              ElementsAre("h 1-7", "squares 2-3", "batch_loss 3-4", "product 7-8", "batch_dw 8-9",
                          "loss 14-17"));
}

TEST(Lifetimes, CopiesOfAMicrobatchAreTheirOwn) {
  const plan::Plan plan = TwoStagePlan({{1, 1}, 4, 3, 3, true});
  int64_t stashes = 0;
  for (const Life& life : LifetimesOfStep(plan.programs(1)).lives) {
    if (plan.programs(1).buffers(life.buffer).name() == "y") ++stashes;
  }
  EXPECT_EQ(stashes, 3);
}

// What was sent is in use until the run that waits for that, if there is one in the step.
TEST(Lifetimes, MessagesLastUntilTheyAreWaitedFor) {
  const plan::Plan plan = TwoStagePlan({{1, 1}, 4, 3, 2, false});
  const Lifetimes lifetimes = LifetimesOfStep(plan.programs(0));
  std::vector<int64_t> ends;
  for (const Life& life : lifetimes.lives) {
    if (plan.programs(0).buffers(life.buffer).name() == "h") ends.push_back(life.end);
  }
  ASSERT_EQ(ends.size(), 3u);
  const auto third = std::find_if(lifetimes.runs.begin(), lifetimes.runs.end(),
                                  [](const RunTimes& run) { return run.microbatch == 2; });
  EXPECT_EQ(ends[0], third->start);  // forward.0 of microbatch 2 has the copy of microbatch 0
  EXPECT_GT(ends[1], lifetimes.runs.back().finish);
}

// Operand and result are in use until a collective that runs meanwhile has ended.
TEST(Lifetimes, StartedCollectivesLastUntilTheirWait) {
  PlanBuilder builder(2);
  const int x = builder.Input("x", Floats(16));
  const int piece = builder.Buffer(plan::TEMPORARY, "piece", Floats(16));
  const int whole = builder.Buffer(plan::TEMPORARY, "whole", Floats(32));
  const int other = builder.Buffer(plan::TEMPORARY, "other", Floats(16));
  const int sum = builder.Buffer(plan::TEMPORARY, "sum", Floats(16));
  builder.Segment("forward");
  builder.Launch("test_add", {x, x}, {piece});
  builder.Collective(plan::Collective::ALL_GATHER, piece, whole).set_stream(1);
  builder.Launch("test_add", {x, x}, {sum});
  builder.AllReduce({sum}, {sum}).set_stream(2);
  builder.Launch("test_add", {x, x}, {other});
  builder.program().mutable_segments(0)->add_instructions()->mutable_wait()->set_collective(1);
  builder.program().mutable_segments(0)->add_instructions()->mutable_wait()->set_collective(3);
  builder.Entry("forward", 0);
  EXPECT_THAT(LivesOf(builder.program(), LifetimesOfStep(builder.program())),
              ElementsAre("piece 1-6", "whole 2-6", "sum 3-4", "sum 4-7", "other 5-5"));
}

TEST(Lifetimes, OtherSegmentsBeginWithNothing) {
  const plan::Plan plan = SmallTrainingPlan(1, 1);
  const std::vector<Lifetimes> others = LifetimesOfOthers(plan.programs(0));
  ASSERT_EQ(others.size(), 1u);
  EXPECT_THAT(LivesOf(plan.programs(0), others[0]), ElementsAre("h 1-2"));
}

// Parameter, gradient, sums, input, scalar, constant are in use all the time: 7 x 64 bytes without
// the sums of the update.
TEST(MemoryStats, PartsAddUpToThePeak) {
  const plan::Plan plan = SmallTrainingPlan(1, 2);
  const MemoryStats stats = ComputeMemoryStats(plan.programs(0));
  EXPECT_EQ(stats.parts.at(MemoryPart::kParameters), 64);
  EXPECT_EQ(stats.parts.at(MemoryPart::kGradients), 64);
  EXPECT_EQ(stats.parts.at(MemoryPart::kOptimizerState), 0);
  EXPECT_EQ(stats.parts.at(MemoryPart::kStash), 64);
  EXPECT_EQ(stats.parts.at(MemoryPart::kTemporaries), 128);  // squares and batch_loss
  EXPECT_EQ(stats.parts.at(MemoryPart::kOther), 4 * 64);
  EXPECT_EQ(stats.peak_bytes, SumOfParts(stats));
  EXPECT_LE(stats.peak_bytes, stats.arena_bytes);
  EXPECT_EQ(stats.segment, "forward");
  EXPECT_EQ(stats.microbatch, 0);
  EXPECT_EQ(stats.instruction, 2);
}

// What a step sets is a gradient behind the backward that sets it, and no stash.
TEST(MemoryStats, GradientsOfAStepAreNotThereAllTheTime) {
  PlanBuilder builder(1);
  const int w = builder.Parameter("w", Floats(16));
  const int x = builder.Input("x", Floats(16));
  const int kept = builder.Buffer(plan::STASH, "kept", Floats(32));
  const int dw = builder.Buffer(plan::STEP_GRADIENT, "w", Floats(16));
  const int sum = builder.Buffer(plan::TEMPORARY, "sum", Floats(64));
  builder.Segment("forward");
  builder.Launch("a", {x, w}, {kept});
  builder.Segment("backward");
  builder.Launch("b", {kept}, {dw});
  builder.Segment("update");
  builder.Launch("c", {dw}, {sum});
  builder.Launch("d", {sum, dw}, {w});
  builder.Schedule(1, 1);
  const MemoryStats stats = ComputeMemoryStats(builder.program());
  EXPECT_EQ(stats.segment, "update");
  EXPECT_EQ(stats.parts.at(MemoryPart::kGradients), 64);
  EXPECT_EQ(stats.parts.at(MemoryPart::kStash), 0);
  EXPECT_EQ(stats.parts.at(MemoryPart::kTemporaries), 256);
  EXPECT_EQ(stats.peak_bytes, 2 * 64 + 64 + 256);  // w, x, dw, sum
  EXPECT_EQ(stats.state_bytes, 2 * 64);
  ASSERT_EQ(stats.stash.size(), 1u);
  EXPECT_EQ(stats.stash[0].segment, "forward");
  EXPECT_EQ(std::count_if(stats.holders.begin(), stats.holders.end(),
                          [](const MemoryHolder& holder) { return holder.name == "w"; }),
            2);
}

TEST(MemoryStats, HoldersAreNamedByTheModel) {
  const plan::Plan plan = SmallTrainingPlan(1, 1);
  const MemoryStats stats = ComputeMemoryStats(plan.programs(0));
  const auto named = [&](const std::string& name) {
    return std::count_if(stats.holders.begin(), stats.holders.end(),
                         [&](const MemoryHolder& holder) { return holder.name == name; });
  };
  EXPECT_EQ(named("w"), 2);                 // and its gradient
  EXPECT_EQ(named("/model/scale/Mul"), 1);  // the stash
  EXPECT_EQ(std::accumulate(stats.holders.begin(), stats.holders.end(), int64_t{0},
                            [](int64_t sum, const auto& holder) { return sum + holder.bytes; }),
            stats.peak_bytes);
}

// All forwards run before the first backward.
TEST(MemoryStats, StashOfAllMicrobatchesInFlight) {
  const plan::Plan plan = TwoStagePlan({{1, 1}, 16, 3, 3, true});
  const MemoryStats stats = ComputeMemoryStats(plan.programs(1));
  ASSERT_EQ(stats.stash.size(), 1u);
  EXPECT_EQ(stats.stash[0].segment, "forward.1");
  EXPECT_EQ(stats.stash[0].bytes, 16 * 4 * 4);
  EXPECT_EQ(stats.stash[0].microbatches, 3);
  EXPECT_EQ(stats.parts.at(MemoryPart::kStash), 3 * 16 * 4 * 4);
  EXPECT_EQ(stats.peak_bytes, SumOfParts(stats));
}

// What a collective writes, and what is made for it alone, is communication.
TEST(MemoryStats, CommunicationOfCollectives) {
  PlanBuilder builder(2);
  const int x = builder.Input("x", Floats(16));
  const int piece = builder.Buffer(plan::TEMPORARY, "piece", Floats(16));
  const int whole = builder.Buffer(plan::TEMPORARY, "whole", Floats(32));
  const int used = builder.Buffer(plan::TEMPORARY, "used", Floats(32));
  builder.Segment("forward");
  builder.Launch("test_add", {x, x}, {piece});
  builder.Collective(plan::Collective::ALL_GATHER, piece, whole);
  builder.Launch("test_add", {whole, whole}, {used});
  builder.Entry("forward", 0);
  const MemoryStats stats = ComputeMemoryStats(builder.program());
  // At the last instruction: whole and used.
  EXPECT_EQ(stats.instruction, 2);
  EXPECT_EQ(stats.parts.at(MemoryPart::kCommunication), 128);
  EXPECT_EQ(stats.parts.at(MemoryPart::kTemporaries), 128);
}

}  // namespace
}  // namespace oriel::runtime
