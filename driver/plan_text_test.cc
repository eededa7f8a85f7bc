#include "driver/plan_text.h"

#include <nlohmann/json.hpp>

#include "driver/plan_json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/plan/plan_builder_testing.h"
#include "runtime/plan/two_stage_plan_testing.h"

namespace oriel::driver {
namespace {

using ::testing::HasSubstr;

// Two ranks; a trainable matrix and a frozen vector.
plan::Plan smallPlan() {
  runtime::PlanBuilder builder(2);
  plan::Plan& plan = builder.plan();
  for (const auto& [name, shape] :
       {std::pair<std::string, runtime::Shape>{"weight", {64, 32}}, {"bias", {64}}}) {
    plan::Parameter* parameter = plan.add_parameters();
    parameter->set_name(name);
    parameter->set_trainable(name == "weight");
    *parameter->mutable_global() = runtime::ToPlan({runtime::DType::kF32, shape});
    builder.Buffer(plan::PARAMETER, name, {runtime::DType::kF32, shape});
  }
  plan::Training* training = plan.mutable_training();
  training->set_global_batch(24);
  training->set_micro_batch(4);
  training->set_data_parallel(2);
  training->set_microbatches(3);
  training->set_steps(100);
  return plan;
}

TEST(PlanTextTest, Sizes) {
  EXPECT_EQ(bytesText(1), "1 byte");
  EXPECT_EQ(bytesText(1023), "1023 bytes");
  EXPECT_EQ(bytesText(1536), "1.50 KiB");
  EXPECT_EQ(bytesText(int64_t{96} << 20), "96.0 MiB");
  EXPECT_EQ(countText(999), "999");
  EXPECT_EQ(countText(12345), "12,345");
  EXPECT_EQ(countText(1'270'000), "1.27 M");
}

TEST(PlanTextTest, Batch) {
  EXPECT_EQ(batchText(smallPlan().training()),
            "global batch 24 = micro batch 4 x 2 data-parallel ranks x 3 microbatches");
}

TEST(PlanTextTest, ParametersByFreezing) {
  const plan::Plan plan = smallPlan();
  const std::string text = parametersText(plan, runtime::ComputePlanStats(plan));
  EXPECT_THAT(text, HasSubstr("2,112 in 2 tensors: 2,048 trainable, 64 frozen"));
  EXPECT_THAT(text, HasSubstr("bias f32[64], frozen"));
}

TEST(PlanTextTest, SaysWhatIsPadded) {
  plan::Plan plan = smallPlan();
  for (const int64_t size : {66, 32}) plan.mutable_parameters(0)->add_padded_shape(size);
  const runtime::PlanStats stats = runtime::ComputePlanStats(plan);
  EXPECT_EQ(stats.parameters, 2112);
  EXPECT_THAT(parametersText(plan, stats), HasSubstr("weight f32[64, 32] padded to [66, 32]"));
  const auto json = nlohmann::json::parse(planJson(plan, stats));
  EXPECT_EQ(json["parameters"]["tensors"][0]["shape"], nlohmann::json({64, 32}));
  EXPECT_EQ(json["parameters"]["tensors"][0]["padded_shape"], nlohmann::json({66, 32}));
}

TEST(PlanTextTest, SaysWhatIsPaddedInGroups) {
  plan::Plan plan = smallPlan();
  for (const int64_t size : {66, 32}) plan.mutable_parameters(0)->add_padded_shape(size);
  for (const int64_t groups : {2, 1}) plan.mutable_parameters(0)->add_padded_groups(groups);
  const runtime::PlanStats stats = runtime::ComputePlanStats(plan);
  EXPECT_THAT(parametersText(plan, stats), HasSubstr("padded to [66, 32] in groups [2, 1]"));
  const auto json = nlohmann::json::parse(planJson(plan, stats));
  EXPECT_EQ(json["parameters"]["tensors"][0]["padded_groups"], nlohmann::json({2, 1}));
}

// Two runs of a forward with two gathers.
plan::Plan gatheringPlan() {
  runtime::PlanBuilder builder(2);
  int piece = builder.Buffer(plan::TEMPORARY, "piece", {runtime::DType::kF32, {3, 128}});
  int whole = builder.Buffer(plan::TEMPORARY, "whole", {runtime::DType::kF32, {6, 128}});
  builder.Segment("forward");
  builder.Collective(plan::Collective::ALL_GATHER, piece, whole);
  builder.Collective(plan::Collective::ALL_GATHER, piece, whole);
  builder.AllReduce({piece}, {piece});
  builder.Schedule(/*micro_batch=*/1, /*microbatches=*/2);
  return builder.plan();
}

TEST(PlanTextTest, CollectivesByKind) {
  const runtime::PlanStats stats = runtime::ComputePlanStats(gatheringPlan());
  EXPECT_EQ(segmentsText(stats.programs[0], /*kernels=*/false),
            "segments    6 instructions and 9.00 KiB sent in collectives per step on each of "
            "ranks 0 to 1\n"
            "  forward   3 instructions, 2 times a step\n"
            "    2 all_gather over a0 (2 ranks) of 3.00 KiB, sends 3.00 KiB\n"
            "    1 all_reduce over a0 (2 ranks) of 1.50 KiB, sends 1.50 KiB\n");
}

TEST(PlanTextTest, VolumeByAxis) {
  const runtime::PlanStats stats = runtime::ComputePlanStats(gatheringPlan());
  EXPECT_EQ(volumeText(stats.programs[0]),
            "volume      9.00 KiB sent per step by each of ranks 0 to 1\n"
            "  dp        forward     9.00 KiB in 4 all_gather, 2 all_reduce over 2 ranks\n");
}

// Two stages of two ranks each, of 3 microbatches.
const runtime::TwoStageOptions kStages = {{2, 2}, 4, 3, 2, false};

TEST(PlanTextTest, Stages) {
  plan::Plan plan = runtime::TwoStagePlan(kStages);
  plan.mutable_programs(1)->add_stages("llm.0-15");
  const runtime::PlanStats stats = runtime::ComputePlanStats(plan);
  EXPECT_THAT(trainingText(plan), HasSubstr("  grid 0    ranks 0 to 1: dp = a0, a0 = 2\n"
                                            "  grid 1    ranks 2 to 3: dp = a0, a0 = 2\n"));
  EXPECT_EQ(programHeading(stats.programs[0]), "grid 0      ranks 0 to 1: stage 0\n");
  EXPECT_EQ(programHeading(stats.programs[1]), "grid 1      ranks 2 to 3: stage 1 (llm.0-15)\n");
  EXPECT_THAT(programsText(stats), HasSubstr("stage 1 (llm.0-15)\n"));
  EXPECT_THAT(memoryText(stats.programs[1]), HasSubstr("in 1 buffers of up to 2 copies\n"));
  EXPECT_THAT(segmentsText(stats.programs[0], /*kernels=*/false),
              HasSubstr("  forward.0  2 instructions, 3 times a step\n"
                        "  backward.0 4 instructions, 3 times a step\n"
                        "  update     5 instructions, 1 times a step\n"));
  EXPECT_EQ(programsText(runtime::ComputePlanStats(smallPlan())), "");
}

// A microbatch is 64 bytes; eval's are no part of a step.
TEST(PlanTextTest, Transfers) {
  const runtime::PlanStats stats = runtime::ComputePlanStats(runtime::TwoStagePlan(kStages));
  EXPECT_EQ(transfersText(stats),
            "transfers   392 bytes per step between grids\n"
            "  0 to 1    forward.0          192 bytes over 1 channel, 3 times\n"
            "  1 to 0    backward.1         192 bytes over 1 channel, 3 times\n"
            "  1 to 0    update               8 bytes over 1 channel, 1 time\n");
  EXPECT_EQ(transfersText(runtime::ComputePlanStats(smallPlan())), "");
}

TEST(PlanJsonTest, StagesAndChannels) {
  const plan::Plan plan = runtime::TwoStagePlan(kStages);
  const auto json = nlohmann::json::parse(planJson(plan, runtime::ComputePlanStats(plan)));
  EXPECT_EQ(json["programs"][1]["grid"], 1);
  EXPECT_EQ(json["programs"][1]["stage_numbers"], nlohmann::json({1}));
  EXPECT_EQ(json["programs"][1]["copies_by_kind"]["stash"], 2);
  ASSERT_EQ(json["channels"].size(), 4);
  EXPECT_EQ(json["channels"][0]["name"], "h");
  EXPECT_EQ(json["channels"][0]["segment"], "forward.0");
  EXPECT_EQ(json["channels"][0]["bytes_per_step"], 192);
  const plan::Plan single = smallPlan();
  EXPECT_FALSE(nlohmann::json::parse(planJson(single, runtime::ComputePlanStats(single)))
                   .contains("channels"));
}

TEST(PlanTextTest, WhatIsStarted) {
  plan::Plan plan = gatheringPlan();
  plan::Collective& gather =
      *plan.mutable_programs(0)->mutable_segments(0)->mutable_instructions(0)->mutable_collective();
  gather.set_stream(1);
  gather.add_operands(gather.operands(0));
  gather.add_results(gather.results(0));
  const runtime::PlanStats stats = runtime::ComputePlanStats(plan);
  EXPECT_THAT(segmentsText(stats.programs[0], false),
              HasSubstr(", 2 tensors, started on stream 1\n"));
  const auto json = nlohmann::json::parse(planJson(plan, stats))["programs"][0]["segments"][0];
  EXPECT_EQ(json["started"][0]["kind"], "all_gather");
  EXPECT_EQ(json["started"][0]["tensors"], 2);
  EXPECT_EQ(json["collectives_by_kind"][0]["stream"], 1);
  EXPECT_EQ(json["collectives_by_kind"][0]["tensors"], 2);
}

TEST(PlanTextTest, StateOfTraining) {
  const runtime::PlanStats stats = runtime::ComputePlanStats(smallPlan());
  EXPECT_THAT(
      memoryText(stats.programs[0]),
      HasSubstr("  state              8.25 KiB of parameters, gradients and optimizer state\n"));
}

TEST(PlanJsonTest, CollectivesByKind) {
  plan::Plan plan = gatheringPlan();
  plan.mutable_programs(0)->mutable_segments(0)->set_predicted_ms(1.5);
  const auto json = nlohmann::json::parse(planJson(plan, runtime::ComputePlanStats(plan)));
  EXPECT_EQ(json["programs"][0]["sent_bytes_per_step"], 9 * 1024);
  const auto& volume = json["programs"][0]["volume"][0];
  EXPECT_EQ(volume["axes"], "dp");
  EXPECT_EQ(volume["segment"], "forward");
  EXPECT_EQ(volume["sent_bytes"], 9 * 1024);
  EXPECT_EQ(volume["counts"]["all_gather"], 4);
  EXPECT_EQ(json["programs"][0]["segments"][0]["predicted_ms"], 1.5);
  const auto& gather = json["programs"][0]["segments"][0]["collectives_by_kind"][0];
  EXPECT_EQ(gather["kind"], "all_gather");
  EXPECT_EQ(gather["axes"], nlohmann::json({"a0"}));
  EXPECT_EQ(gather["count"], 2);
  EXPECT_EQ(gather["sent_bytes"], 3 * 1024);
}

TEST(PlanJsonTest, KeysThatScriptsUse) {
  const plan::Plan plan = smallPlan();
  const auto json = nlohmann::json::parse(planJson(plan, runtime::ComputePlanStats(plan)));
  EXPECT_EQ(json["model"], "by_hand");
  EXPECT_EQ(json["world"], 2);
  EXPECT_EQ(json["steps"], 100);
  EXPECT_EQ(json["batch"]["microbatches"], 3);
  EXPECT_EQ(json["grids"][0]["mesh"]["dp"][0], "a0");
  EXPECT_EQ(json["parameters"]["frozen"], 64);
  EXPECT_EQ(json["parameters"]["tensors"][0]["shape"], nlohmann::json({64, 32}));
  EXPECT_EQ(json["programs"][0]["bytes_by_kind"]["parameter"], 2112 * 4);
  EXPECT_EQ(json["programs"][0]["state_bytes"], 2112 * 4);
  EXPECT_TRUE(json["programs"][0]["stages"].empty());
}

// A grid where one module has a mesh of its own.
TEST(PlanTextTest, MeshesOfModules) {
  plan::Plan plan = smallPlan();
  plan::MeshAxis* axis = plan.mutable_grids(0)->add_mesh();
  axis->set_module("vision");
  axis->set_name("tp");
  axis->add_axes("a0");
  EXPECT_THAT(trainingText(plan), HasSubstr("dp = a0, vision tp = a0, a0 = 2"));
  const auto json = nlohmann::json::parse(planJson(plan, runtime::ComputePlanStats(plan)));
  EXPECT_EQ(json["grids"][0]["mesh"].size(), 1);
  EXPECT_EQ(json["grids"][0]["module_meshes"]["vision"]["tp"][0], "a0");
}

TEST(PlanJsonTest, NamesAreEscaped) {
  plan::Plan plan = smallPlan();
  plan.mutable_provenance()->set_model_path("a\x01");
  plan.set_model_name("\"quoted\"");
  const auto json = nlohmann::json::parse(planJson(plan, runtime::ComputePlanStats(plan)));
  EXPECT_EQ(json["model"], "\"quoted\"");
}

}  // namespace
}  // namespace oriel::driver
