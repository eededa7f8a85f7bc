#include "driver/strategy_diff.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "passes/strategy/strategy_reader.h"

namespace oriel::driver {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Comparison compare(const std::string& a, const std::string& b) {
  return compareStrategies(parseStrategy(a, "a.yaml").value(), "a.yaml",
                           parseStrategy(b, "b.yaml").value(), "b.yaml");
}

std::vector<std::string> keysThatDiffer(const Comparison& comparison) {
  std::vector<std::string> keys;
  for (const ComparedSection& section : comparison.sections) {
    for (const ComparedValue& value : section.values) {
      if (value.differs()) keys.push_back(value.key);
    }
  }
  return keys;
}

TEST(StrategyDiffTest, TextOfWhatDiffers) {
  EXPECT_EQ(comparisonText(compare("mesh: {dp: 4}\nmemory: 16 GiB\n",
                                   "mesh: {dp: 2, tp: 4}\nzero: 1\nmemory: 8 GiB\n"),
                           /*all=*/false),
            "A           a.yaml\n"
            "B           b.yaml\n"
            "                                 A             B      change\n"
            "strategy    - where nothing is fixed\n"
            "  mesh.dp                        4             2\n"
            "  mesh.tp                        1             4\n"
            "  zero                           0             1\n"
            "  memory                  16.0 GiB      8.00 GiB     -50.0 %\n"
            "ranks\n"
            "  ranks                          4             8    +100.0 %\n"
            "  data parallel                  4             2     -50.0 %\n");
}

// Defaults that are written, another order, comments, units.
TEST(StrategyDiffTest, TheSameWrittenDifferently) {
  const Comparison comparison =
      compare("mesh: {dp: 2}\nmemory: 1 GiB\nshardings:\n  - {parameters: [a, b], tp: none}\n",
              "# by hand\nmemory: 1024 MiB\nzero: 0\nstages: 1\nremat: auto\nmesh: {tp: 1, dp: 2}\n"
              "shardings: [{parameters: b, tp: none}, {parameters: a, tp: none}]\noverlap: true\n");
  EXPECT_THAT(keysThatDiffer(comparison), IsEmpty());
  EXPECT_TRUE(comparison.same());
  EXPECT_EQ(comparisonText(comparison, /*all=*/false),
            "A           a.yaml\nB           b.yaml\nnothing differs\n");
  EXPECT_THAT(
      comparisonText(comparison, /*all=*/true),
      ::testing::HasSubstr("  remat                       auto          auto           =\n"));
}

TEST(StrategyDiffTest, StagesAndTheirMeshes) {
  const Comparison comparison = compare("mesh: {dp: 2}\nstages: 2\nmicrobatches: 4\n",
                                        "stages:\n  - {blocks: vision, mesh: {dp: 2}}\n  - "
                                        "{blocks: [llm.0-3, llm.4], mesh: {tp: 2}}\n"
                                        "schedule: gpipe\nplacement: pp_outermost\n");
  EXPECT_THAT(keysThatDiffer(comparison),
              ElementsAre("mesh.dp", "mesh.fsdp", "mesh.cp", "mesh.tp", "stages[0].blocks",
                          "stages[0].mesh.dp", "stages[0].mesh.fsdp", "stages[0].mesh.cp",
                          "stages[0].mesh.tp", "stages[1].blocks", "stages[1].mesh.dp",
                          "stages[1].mesh.fsdp", "stages[1].mesh.cp", "stages[1].mesh.tp",
                          "schedule", "microbatches", "data_parallel"));
}

TEST(StrategyDiffTest, Placements) {
  const std::string text = "mesh: {dp: 2}\nstages: 2\n";
  EXPECT_THAT(keysThatDiffer(compare(text, text + "placement: dp_outermost\n")),
              ElementsAre("placement"));
}

TEST(StrategyDiffTest, ModulesRulesAndOverlap) {
  const Comparison comparison = compare(
      "mesh: {dp: 2}\nmodules:\n  vision: {parameters: [v.*], mesh: {tp: 2}}\n"
      "shardings: [{parameters: head, tp: 1}]\noverlap: {bucket: 25 MiB}\n",
      "mesh: {dp: 2}\nmodules:\n  vision: {parameters: [v.*], mesh: {dp: 2}}\n"
      "shardings: [{parameters: head, tp: none}]\noverlap: false\n");
  EXPECT_THAT(keysThatDiffer(comparison),
              ElementsAre("modules.vision.mesh.dp", "modules.vision.mesh.tp",
                          "shardings[\"head\"].tp", "overlap", "overlap.bucket", "data_parallel"));
}

}  // namespace
}  // namespace oriel::driver
