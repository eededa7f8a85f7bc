#include "runtime/plan/plan_stats.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/plan/plan_builder_testing.h"
#include "runtime/plan/two_stage_plan_testing.h"

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
  // Two temporaries share 32 bytes.
  EXPECT_THAT(
      stats.programs[0].bytes_by_kind,
      UnorderedElementsAre(Pair("parameter", 16), Pair("gradient", 16), Pair("accumulator", 4),
                           Pair("input", 32), Pair("scalar", 4), Pair("constant", 4),
                           Pair("stash", 32), Pair("temporary", 52), Pair("output", 36)));
  // Those, and the loss and gradient of a batch.
  EXPECT_EQ(stats.programs[0].buffers_by_kind.at("temporary"), 4);
}

TEST(PlanStats, CountsPerStep) {
  const PlanStats stats = ComputePlanStats(SmallTrainingPlan(2, 3));
  const ProgramStats& program = stats.programs[0];
  ASSERT_EQ(program.segments.size(), 4u);
  EXPECT_EQ(program.segments[0].runs_per_step, 3);
  EXPECT_THAT(program.segments[0].kernels,
              ElementsAre(Pair("test_add", 1), Pair("test_multiply", 2), Pair("test_sum", 1)));
  EXPECT_EQ(program.segments[2].collectives, 1);
  EXPECT_EQ(program.segments[2].collective_bytes, 20);
  EXPECT_EQ(program.segments[3].runs_per_step, 0);
  EXPECT_EQ(program.collective_bytes_per_step, 20);
  EXPECT_EQ(program.instructions_per_step, 3 * 4 + 3 * 3 + 5);
}

TEST(PlanStats, SumsCollectivesByKindAndAxes) {
  PlanBuilder builder(4);
  auto* axis = builder.plan().mutable_grids(0)->add_axes();
  axis->set_name("a1");
  axis->set_size(2);
  builder.plan().set_world_size(8);
  builder.program().set_rank_count(8);
  const int piece = builder.Buffer(plan::TEMPORARY, "piece", {DType::kF32, {2, 3}});
  const int whole = builder.Buffer(plan::TEMPORARY, "whole", {DType::kF32, {8, 3}});
  const int swapped = builder.Buffer(plan::TEMPORARY, "swapped", {DType::kF32, {2, 12}});
  builder.Segment("forward");
  builder.Collective(plan::Collective::ALL_GATHER, piece, whole);
  builder.Collective(plan::Collective::ALL_TO_ALL, whole, swapped).set_concat_dims(0, 1);
  builder.Collective(plan::Collective::REDUCE_SCATTER, whole, piece);
  builder.Collective(plan::Collective::ALL_GATHER, piece, whole);
  builder.AllReduce({whole, piece}, {whole, piece}).set_axes(0, "a1");
  builder.Slice(whole, piece, 0, {"a0"});
  const SegmentStats stats = ComputePlanStats(builder.plan()).programs[0].segments[0];
  EXPECT_EQ(stats.collectives, 5);
  EXPECT_THAT(stats.kernels, ElementsAre(Pair("slice_local", 1)));
  std::vector<std::string> texts;
  for (const CollectiveStats& each : stats.collectives_by_kind) {
    texts.push_back(absl::StrCat(each.count, " ", each.kind, " over ",
                                 absl::StrJoin(each.axes, ","), " on ", each.ranks, ": ",
                                 each.bytes, ", ", each.sent_bytes));
  }
  EXPECT_THAT(
      texts,
      ElementsAre("2 all_gather over a0 on 4: 48, 144", "1 all_to_all over a0 on 4: 96, 72",
                  "1 reduce_scatter over a0 on 4: 96, 72", "1 all_reduce over a1 on 2: 120, 120"));
  EXPECT_EQ(stats.sent_bytes, 144 + 72 + 72 + 120);
}

// What is started counts for itself, a bucket once; the volume is that of both.
TEST(PlanStats, CountsWhatIsStarted) {
  PlanBuilder builder(4);
  const int a = builder.Buffer(plan::TEMPORARY, "a", {DType::kF32, {100}});
  const int b = builder.Buffer(plan::TEMPORARY, "b", {DType::kF32, {60}});
  builder.Segment("backward");
  builder.AllReduce({a}, {a}).set_stream(2);
  builder.AllReduce({a, b}, {a, b}).set_stream(2);
  builder.AllReduce({b}, {b});
  builder.Wait(0);
  builder.Wait(1);
  builder.Entry("backward", 0);
  const ProgramStats program = ComputePlanStats(builder.plan()).programs[0];
  const SegmentStats& stats = program.segments[0];
  EXPECT_EQ(stats.collectives, 3);
  ASSERT_EQ(stats.started.size(), 2u);
  EXPECT_EQ(stats.started[1].kind, "all_reduce");
  EXPECT_EQ(stats.started[1].stream, 2);
  EXPECT_EQ(stats.started[1].instruction, 1);
  EXPECT_EQ(stats.started[1].wait, 4);
  EXPECT_EQ(stats.started[1].tensors, 2);
  EXPECT_EQ(stats.started[1].sent_bytes, 2 * (300 + 180));
  EXPECT_THAT(stats.kernels, ElementsAre(Pair("wait", 2)));
  ASSERT_EQ(stats.collectives_by_kind.size(), 2u);
  const CollectiveStats &started = stats.collectives_by_kind[0],
                        &plain = stats.collectives_by_kind[1];
  EXPECT_EQ(started.stream, 2);
  EXPECT_EQ(started.count, 2);
  EXPECT_EQ(started.tensors, 3);
  EXPECT_EQ(started.bytes, 4 * 260);
  EXPECT_EQ(plain.stream, 0);
  EXPECT_EQ(plain.tensors, 1);
  ASSERT_EQ(program.volume.size(), 1u);
  EXPECT_EQ(program.volume[0].sent_bytes, stats.sent_bytes);
  EXPECT_THAT(program.volume[0].counts, ElementsAre(Pair("all_reduce", 3)));
}

// By mesh axis and segment, for a whole step; a segment that is not in the schedule sends nothing.
TEST(PlanStats, VolumeByMeshAxis) {
  PlanBuilder builder(2);
  plan::Grid& grid = *builder.plan().mutable_grids(0);
  grid = MakeGrid({2, 2, 2});
  builder.plan().set_world_size(8);
  const auto mesh = [&](const char* module, const char* name, std::vector<std::string> axes) {
    plan::MeshAxis* axis = grid.add_mesh();
    axis->set_module(module);
    axis->set_name(name);
    axis->mutable_axes()->Add(axes.begin(), axes.end());
  };
  mesh("", "dp", {"a0"});
  mesh("", "tp", {"a1", "a2"});
  mesh("vision", "dp", {"a0", "a1"});
  const int x = builder.Buffer(plan::TEMPORARY, "x", {DType::kF32, {16}});
  const auto reduce = [&](std::vector<std::string> axes) {
    plan::Collective& collective = builder.AllReduce({x}, {x});
    collective.mutable_axes()->Clear();
    collective.mutable_axes()->Add(axes.begin(), axes.end());
  };
  builder.Segment("forward");
  reduce({"a1", "a2"});
  reduce({"a0"});
  reduce({"a1", "a2"});
  reduce({"a2"});
  builder.Segment("eval");
  reduce({"a0"});
  builder.Segment("backward");
  reduce({"a0", "a1", "a2"});
  reduce({"a0", "a1"});
  reduce({"a0"});
  builder.Schedule(/*micro_batch=*/1, /*microbatches=*/3);
  const PlanStats stats = ComputePlanStats(builder.plan());
  std::vector<std::string> texts;
  for (const AxisVolume& each : stats.programs[0].volume) {
    texts.push_back(absl::StrCat(each.axes, " ", each.segment, " on ", each.ranks, ": ",
                                 each.counts.at("all_reduce"), ", ", each.sent_bytes));
  }
  EXPECT_THAT(texts, ElementsAre("tp forward on 4: 6, 576", "dp forward on 2: 3, 192",
                                 "dp backward on 2: 3, 192", "a2 forward on 2: 3, 192",
                                 "dp+tp backward on 8: 3, 336", "vision dp backward on 4: 3, 288"));
}

// All copies count.
TEST(PlanStats, CountsRingsAndChannels) {
  const PlanStats stats = ComputePlanStats(TwoStagePlan({{2, 1}, 4, 4, 3, false}));
  ASSERT_EQ(stats.programs.size(), 2u);
  EXPECT_EQ(stats.programs[1].grid, 1);
  EXPECT_THAT(stats.programs[1].stages, ElementsAre(1));
  // Of 4 x 4 floats: three copies of h and of dh, one of what eval receives; the loss.
  EXPECT_EQ(stats.programs[1].bytes_by_kind.at("transfer"), 3 * 64 + 3 * 64 + 64 + 4);
  EXPECT_THAT(stats.programs[1].copies_by_kind,
              UnorderedElementsAre(Pair("stash", 3), Pair("transfer", 3)));
  EXPECT_EQ(stats.programs[0].segments[1].kernels.at("receive"), 1);
  ASSERT_EQ(stats.channels.size(), 4u);
  EXPECT_EQ(stats.channels[0].segment, "forward.0");
  EXPECT_EQ(stats.channels[0].runs_per_step, 4);
  EXPECT_EQ(stats.channels[0].bytes, 64);
  EXPECT_EQ(stats.channels[2].runs_per_step, 0);  // of eval
  EXPECT_EQ(stats.channels[3].bytes, 8);          // the loss, to each of two ranks
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
