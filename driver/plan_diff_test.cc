#include "driver/plan_diff.h"

#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/plan/plan_builder_testing.h"
#include "runtime/plan/plan_stats.h"
#include "runtime/plan/two_stage_plan_testing.h"

namespace oriel::driver {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Comparison compare(const plan::Plan& a, const plan::Plan& b) {
  return comparePlans(a, "a.oplan", b, "b.oplan").value();
}

// null if there is no such value.
nlohmann::json valueOf(const Comparison& comparison, const std::string& section,
                       const std::string& key, nlohmann::json grid = nullptr, bool all = true) {
  const auto json = nlohmann::json::parse(comparisonJson(comparison, all));
  for (const auto& each : json["values"]) {
    if (each["section"] == section && each["key"] == key && each["grid"] == grid) return each;
  }
  return nullptr;
}

plan::Plan twoStages(int64_t microbatches, int64_t slots) {
  return runtime::TwoStagePlan({{2, 2}, 4, microbatches, slots, false});
}

TEST(PlanDiffTest, NothingDiffers) {
  const plan::Plan plan = runtime::SmallTrainingPlan(2, 3);
  plan::Plan elsewhere = plan;
  elsewhere.mutable_provenance()->set_model_path("elsewhere/model.onnx");
  const Comparison comparison = compare(plan, elsewhere);
  EXPECT_TRUE(comparison.same());
  EXPECT_EQ(comparisonText(comparison, /*all=*/false),
            "A           a.oplan\nB           b.oplan\nnothing differs\n");
  const auto json = nlohmann::json::parse(comparisonJson(comparison, /*all=*/false));
  EXPECT_EQ(json["kind"], "plans");
  EXPECT_TRUE(json["same"]);
  EXPECT_TRUE(json["values"].empty());
  EXPECT_TRUE(json["texts"]["strategy"].empty());
}

TEST(PlanDiffTest, AllShowsWhatIsTheSame) {
  const plan::Plan plan = runtime::SmallTrainingPlan(2, 3);
  const std::string text = comparisonText(compare(plan, plan), /*all=*/true);
  EXPECT_THAT(text, HasSubstr("  microbatches                     3             3           =\n"));
  EXPECT_THAT(text, HasSubstr("nothing differs\n"));
}

TEST(PlanDiffTest, LinesOfTheStrategy) {
  plan::Plan a = runtime::SmallTrainingPlan(2, 3), b = a;
  a.mutable_provenance()->set_strategy("mesh: {dp: 2}\nzero: 1\n");
  b.mutable_provenance()->set_strategy("mesh: {dp: 2}\nzero: 3\n");
  const Comparison comparison = compare(a, b);
  EXPECT_EQ(comparisonText(comparison, /*all=*/false),
            "A           a.oplan\n"
            "B           b.oplan\n"
            "strategy    - only in A, + only in B\n"
            "  - zero: 1\n"
            "  + zero: 3\n");
  EXPECT_THAT(comparisonText(comparison, /*all=*/true), HasSubstr("    mesh: {dp: 2}\n  - zero"));
  const auto json = nlohmann::json::parse(comparisonJson(comparison, /*all=*/false));
  EXPECT_FALSE(json["same"]);
  EXPECT_EQ(
      json["texts"]["strategy"],
      nlohmann::json::parse(R"([{"in": "a", "text": "zero: 1"}, {"in": "b", "text": "zero: 3"}])"));
}

// All-reduce of 20 bytes on 2 ranks sends 20, on 4 ranks 30; the launches are those of a rank.
TEST(PlanDiffTest, RanksAndVolume) {
  const Comparison comparison =
      compare(runtime::SmallTrainingPlan(2, 3), runtime::SmallTrainingPlan(4, 2));
  const auto ranks = valueOf(comparison, "ranks", "ranks");
  EXPECT_EQ(ranks["a"], 2);
  EXPECT_EQ(ranks["b"], 4);
  EXPECT_EQ(ranks["unit"], "count");
  EXPECT_EQ(ranks["change_percent"], 100.0);
  const auto volume = valueOf(comparison, "volume", "dp");
  EXPECT_EQ(volume["a"], 20);
  EXPECT_EQ(volume["b"], 30);
  EXPECT_EQ(volume["change_percent"], 50.0);
  // 4 of forward, 3 of backward, 3 of update.
  const auto launches = valueOf(comparison, "launches", "kernels");
  EXPECT_EQ(launches["a"], 3 * 7 + 3);
  EXPECT_EQ(launches["b"], 2 * 7 + 3);
  EXPECT_EQ(valueOf(comparison, "launches", "collectives", nullptr, /*all=*/false), nullptr);
  EXPECT_EQ(valueOf(comparison, "launches", "collectives")["change_percent"], 0.0);
}

// An axis that one of them has alone.
TEST(PlanDiffTest, AnotherAxis) {
  const plan::Plan a = runtime::SmallTrainingPlan(2, 3);
  plan::Plan b = a;
  b.mutable_grids(0)->mutable_mesh(0)->set_name("fsdp");
  const Comparison comparison = compare(a, b);
  EXPECT_EQ(valueOf(comparison, "volume", "fsdp")["a"], 0);
  EXPECT_EQ(valueOf(comparison, "volume", "fsdp")["change_percent"], nullptr);
  EXPECT_EQ(valueOf(comparison, "volume", "dp")["change_percent"], -100.0);
  EXPECT_EQ(valueOf(comparison, "grid", "mesh", 0)["b"], "fsdp = 2");
  EXPECT_THAT(comparisonText(comparison, false),
              AllOf(HasSubstr("  dp                      20 bytes       0 bytes    -100.0 %\n"),
                    HasSubstr("  fsdp                     0 bytes      20 bytes         new\n")));
}

// What each microbatch in flight keeps is one more copy, and each sends as much.
TEST(PlanDiffTest, EachGrid) {
  const plan::Plan a = twoStages(3, 2), b = twoStages(6, 3);
  const Comparison comparison = compare(a, b);
  for (const int grid : {0, 1}) {
    const runtime::MemoryStats memory[] = {runtime::ComputeMemoryStats(a.programs(grid)),
                                           runtime::ComputeMemoryStats(b.programs(grid))};
    const auto peak = valueOf(comparison, "memory", "peak", grid);
    EXPECT_EQ(peak["a"], memory[0].peak_bytes);
    EXPECT_EQ(peak["b"], memory[1].peak_bytes);
    EXPECT_EQ(valueOf(comparison, "memory", "arena", grid)["b"], b.programs(grid).arena_bytes());
    int64_t sum = 0;
    for (int part = 0; part < runtime::kMemoryParts; ++part) {
      const std::string name = runtime::MemoryPartName(static_cast<runtime::MemoryPart>(part));
      sum += valueOf(comparison, "memory", name, grid)["b"].get<int64_t>();
    }
    EXPECT_EQ(sum, memory[1].peak_bytes);
  }
  const auto transfers = valueOf(comparison, "transfers", "0 to 1");
  EXPECT_EQ(transfers["a"], 192);
  EXPECT_EQ(transfers["b"], 384);
  EXPECT_EQ(valueOf(comparison, "ranks", "stages")["a"], 2);
}

// Then the rank that needs most speaks for all.
TEST(PlanDiffTest, AnotherNumberOfGrids) {
  const plan::Plan a = runtime::SmallTrainingPlan(2, 3), b = twoStages(3, 2);
  const Comparison comparison = compare(a, b);
  EXPECT_EQ(valueOf(comparison, "ranks", "grids")["b"], 2);
  EXPECT_EQ(valueOf(comparison, "memory", "peak", 0), nullptr);
  EXPECT_EQ(valueOf(comparison, "transfers", "0 to 1"), nullptr);
  EXPECT_EQ(valueOf(comparison, "transfers", "total")["a"], 0);
  EXPECT_EQ(valueOf(comparison, "transfers", "total")["b"], 392);
  const int largest = b.programs(0).arena_bytes() < b.programs(1).arena_bytes() ? 1 : 0;
  EXPECT_EQ(valueOf(comparison, "memory", "grid")["b"], largest);
  EXPECT_EQ(valueOf(comparison, "memory", "arena")["b"], b.programs(largest).arena_bytes());
}

TEST(PlanDiffTest, PredictedTimes) {
  const plan::Plan a = runtime::SmallTrainingPlan(2, 3);
  EXPECT_EQ(valueOf(compare(a, a), "time", "step"), nullptr);
  plan::Plan b = a;
  for (plan::Segment& segment : *b.mutable_programs(0)->mutable_segments()) {
    segment.set_predicted_ms(0.5);
  }
  const auto only = valueOf(compare(a, b), "time", "step");
  EXPECT_EQ(only["a"], nullptr);
  EXPECT_EQ(only["b"], 3.5);  // forward and backward of 3 microbatches, and update
  EXPECT_EQ(only["unit"], "ms");
  plan::Plan c = b;
  c.mutable_programs(0)->mutable_segments(0)->set_predicted_ms(1.0);
  EXPECT_THAT(comparisonText(compare(b, c), /*all=*/false),
              AllOf(HasSubstr("  step                    3.500 ms      5.000 ms     +42.9 %\n"),
                    Not(HasSubstr("update"))));
}

TEST(PlanDiffTest, AnotherModel) {
  plan::Plan a = runtime::SmallTrainingPlan(2, 3), b = a;
  a.mutable_provenance()->set_model_sha256(std::string(64, '0'));
  b.mutable_provenance()->set_model_sha256(std::string(64, 'f'));
  b.mutable_provenance()->set_model_path("other.onnx");
  b.mutable_provenance()->add_flags("--fuse-loss");
  const Comparison comparison = compare(a, b);
  EXPECT_EQ(valueOf(comparison, "model", "path")["b"], "other.onnx");
  EXPECT_EQ(valueOf(comparison, "compiler", "flags")["b"], "--fuse-loss");
  EXPECT_THAT(comparisonText(comparison, /*all=*/false),
              HasSubstr("  sha256\n    A  " + std::string(64, '0') + "\n    B  "));
}

}  // namespace
}  // namespace oriel::driver
