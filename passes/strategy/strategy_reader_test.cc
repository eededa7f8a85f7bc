#include "passes/strategy/strategy_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/config/reader_testing.h"
#include "passes/config/yaml_reader.h"

namespace oriel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// With every key; tests replace parts of it.
const char kFull[] = R"(mesh: {dp: 4, tp: 2}
zero: 2
hsdp: 2
sequence_parallel: true
modules:
  vision: {parameters: ["vision_tower.*", "model.vision.*"], mesh: {dp: 8}}
shardings:
  - {parameters: "lm_head.weight", tp: none}
  - {parameters: ["*.q_proj.weight"], tp: 1}
remat: full
memory: 16 GiB
padding: true
)";

std::string errorOf(const std::string& text) {
  SCOPED_TRACE(text);
  return refusalOf(parseStrategy(text, "s.yaml"));
}

TEST(StrategyReader, ReadsEveryKey) {
  absl::StatusOr<Strategy> strategy = parseStrategy(kFull, "s.yaml");
  ASSERT_TRUE(strategy.ok()) << strategy.status();
  EXPECT_EQ(strategy->mesh, (Mesh{4, 1, 2}));
  EXPECT_EQ(strategy->zero, 2);
  EXPECT_EQ(strategy->hsdp, 2);
  EXPECT_TRUE(strategy->sequenceParallel);
  EXPECT_TRUE(strategy->padding);
  EXPECT_EQ(strategy->memory, int64_t{16} << 30);
  EXPECT_THAT(
      strategy->modules,
      ElementsAre(Strategy::Module{"vision", {"vision_tower.*", "model.vision.*"}, Mesh{8, 1, 1}}));
  EXPECT_THAT(strategy->shardings, ElementsAre(Strategy::Sharding{{"lm_head.weight"}, std::nullopt},
                                               Strategy::Sharding{{"*.q_proj.weight"}, 1}));
  EXPECT_EQ(strategy->remat, RematPolicy::kFull);
  EXPECT_EQ(strategy->text, kFull);
}

TEST(StrategyReader, ReadsOverlap) {
  const auto read = [](const std::string& value) {
    absl::StatusOr<Strategy> strategy = parseStrategy("mesh: {}\noverlap: " + value, "s.yaml");
    EXPECT_TRUE(strategy.ok()) << strategy.status();
    return strategy.value_or(Strategy()).overlap;
  };
  EXPECT_EQ(read("false"), std::nullopt);
  EXPECT_EQ(read("true"), Overlap());
  EXPECT_EQ(read("{bucket: 25 MiB}"), (Overlap{25 << 20, std::nullopt}));
  EXPECT_EQ(read("{bucket: 1.5 KB, prefetch: 0}"), (Overlap{1500, 0}));
  EXPECT_THAT(errorOf("mesh: {}\noverlap: maybe"),
              HasSubstr("'overlap' must be true, false, or sizes"));
  EXPECT_THAT(errorOf("mesh: {}\noverlap: {bucket: -1}"),
              HasSubstr("'overlap.bucket' must be a number of bytes, e.g. `25 MiB`"));
  EXPECT_THAT(errorOf("mesh: {}\noverlap: {ahead: 1}"), HasSubstr("ahead"));
}

TEST(StrategyReader, ReadsStages) {
  absl::StatusOr<Strategy> strategy = parseStrategy(
      "mesh: {tp: 2}\nstages: auto 4\nschedule: zb-h1\nmicrobatches: 8\nbalance: parameters\n"
      "placement: dp_outermost\nmodules: {vision: {parameters: \"v*\"}}",
      "s.yaml");
  ASSERT_TRUE(strategy.ok()) << strategy.status();
  Pipeline expected;
  expected.stages = 4;
  expected.schedule = ScheduleKind::kZbH1;
  expected.microbatches = 8;
  expected.balance = Pipeline::Balance::kParameters;
  expected.placement = Placement::kDpOutermost;
  EXPECT_EQ(strategy->pipeline, expected);
  EXPECT_EQ(strategy->modules[0].mesh, std::nullopt);

  strategy = parseStrategy("mesh: {}\nstages: 4\ninterleave: 2", "s.yaml");
  ASSERT_TRUE(strategy.ok()) << strategy.status();
  EXPECT_EQ(strategy->pipeline->schedule, ScheduleKind::kInterleaved);
  strategy = parseStrategy("mesh: {}\nmicrobatches: 4", "s.yaml");
  ASSERT_TRUE(strategy.ok()) << strategy.status();
  EXPECT_EQ(strategy->stageCount(), 1);
  EXPECT_EQ(strategy->pipeline->microbatches, 4);
}

TEST(StrategyReader, ReadsWhatIsInEachStage) {
  absl::StatusOr<Strategy> strategy = parseStrategy(
      "mesh: {tp: 4}\nstages:\n  - {blocks: [vision, 0-3], mesh: {dp: 4}}\n  - [llm.0-7, \"8\"]\n"
      "  - llm.8-15\n",
      "s.yaml");
  ASSERT_TRUE(strategy.ok()) << strategy.status();
  EXPECT_EQ(strategy->stageCount(), 3);
  EXPECT_THAT(strategy->pipeline->named,
              ElementsAre(Pipeline::Stage{{"vision", "0-3"}, Mesh{4, 1, 1}},
                          Pipeline::Stage{{"llm.0-7", "8"}, std::nullopt},
                          Pipeline::Stage{{"llm.8-15"}, std::nullopt}));
  // No other mesh is needed where each has one.
  EXPECT_TRUE(parseStrategy("stages: [{blocks: a, mesh: {}}, {blocks: b, mesh: {}}]", "s").ok());
  EXPECT_THAT(errorOf("stages: [{blocks: a, mesh: {}}, b]"), HasSubstr("missing key 'mesh'"));
}

TEST(StrategyReader, StagesThatCanNotBe) {
  for (const char* stages : {"0", "auto", "some 4", "{a: b}", "-1", "4.5"}) {
    EXPECT_THAT(errorOf(std::string("mesh: {}\nstages: ") + stages),
                HasSubstr("s.yaml:2:9: 'stages' must be a number from 1 to 1048576, `auto N`, or"))
        << stages;
  }
  EXPECT_THAT(errorOf("mesh: {}\nstages: []"), HasSubstr("'stages' must name at least one stage"));
  EXPECT_THAT(errorOf("mesh: {}\nstages: [a, []]"),
              HasSubstr("s.yaml:2:13: 'stages[1]' must name at least one block"));
  EXPECT_THAT(errorOf("mesh: {}\nstages: [a, [[b]]]"), HasSubstr("'stages[1]' must name blocks"));
  EXPECT_THAT(errorOf("mesh: {}\nstages: [a, {mesh: {}}]"),
              HasSubstr("missing key 'stages[1].blocks'"));
  EXPECT_THAT(errorOf("mesh: {}\nstages: 4\nschedule: 1f1"), HasSubstr("did you mean '1f1b'?"));
  EXPECT_THAT(errorOf("mesh: {}\nschedule: 1f1b"),
              HasSubstr("s.yaml:2:11: 'schedule' is of several stages"));
  EXPECT_THAT(errorOf("mesh: {}\nstages: 3\nschedule: interleaved"),
              HasSubstr("s.yaml:2:9: 'stages' makes 3, which is no multiple of interleave (2)"));
  EXPECT_THAT(errorOf("mesh: {}\nstages: 4\ninterleave: 2\nschedule: gpipe"),
              HasSubstr("s.yaml:3:13: 'interleave' of 2 needs the schedule interleaved"));
  EXPECT_THAT(errorOf("mesh: {}\nstages: 4\nmicrobatches: 0"),
              HasSubstr("'microbatches' must be 1 to"));
  EXPECT_THAT(errorOf("mesh: {}\nstages: 1\nplacement: dp_outermost"),
              HasSubstr("s.yaml:3:12: 'placement' dp_outermost lays the stages of a pipeline"));
  EXPECT_THAT(errorOf("mesh: {}\nmicrobatches: 2\nplacement: dp_outermost"),
              HasSubstr("'placement' is of several stages: say how many"));
  EXPECT_THAT(errorOf("mesh: {}\nstages: 2\nplacement: dp"), HasSubstr("s.yaml:3:12: "));
  EXPECT_THAT(errorOf("mesh: {}\nstages: [a, b]\nbalance: time"),
              HasSubstr("'balance' is for cuts that are found"));
  EXPECT_THAT(errorOf("mesh: {dp: 2, fsdp: 2}\nzero: 1\nstages: [a, {blocks: b, mesh: {dp: 2}}]\n"
                      "modules: {c: {parameters: c, mesh: {dp: 3}}}"),
              HasSubstr("'modules.c.mesh' has 3 ranks, as many as no grid has"));
}

TEST(StrategyReader, MissingKeysMeanNothingIsSplit) {
  absl::StatusOr<Strategy> strategy = parseStrategy("mesh: {}", "s.yaml");
  ASSERT_TRUE(strategy.ok()) << strategy.status();
  EXPECT_EQ(*strategy, Strategy());
  EXPECT_EQ(strategy->ranks(), 1);
}

TEST(StrategyReader, WhatIsNoStrategy) {
  EXPECT_THAT(errorOf(""), HasSubstr("a strategy must be a mapping"));
  EXPECT_THAT(errorOf("dp=2"), HasSubstr("s.yaml:1:1: a strategy must be a mapping"));
  EXPECT_THAT(errorOf("mesh: {dp: 2"), HasSubstr("s.yaml:"));
  EXPECT_THAT(errorOf("\xff"), HasSubstr("s.yaml: is not UTF-8 text"));
  EXPECT_THAT(errorOf("zero: 1"), HasSubstr("s.yaml:1:1: missing key 'mesh'"));
}

TEST(StrategyReader, TyposNameTheNearestKey) {
  EXPECT_THAT(errorOf(replaced(kFull, "zero", "zeros")),
              HasSubstr("s.yaml:2:1: unknown key 'zeros'; did you mean 'zero'?"));
  EXPECT_THAT(errorOf(replaced(kFull, "dp: 4", "ddp: 4")),
              HasSubstr("s.yaml:1:8: unknown key 'ddp' in 'mesh'; did you mean 'dp'?"));
  EXPECT_THAT(errorOf(replaced(kFull, "parameters", "parameter")),
              HasSubstr("s.yaml:6:12: unknown key 'parameter' in 'modules.vision'"));
  EXPECT_THAT(errorOf(replaced(kFull, "weight\", tp", "weight\", pt")),
              HasSubstr("unknown key 'pt' in 'shardings[0]'"));
}

TEST(StrategyReader, ContextParallelism) {
  absl::StatusOr<Strategy> strategy = parseStrategy("mesh: {dp: 2, cp: 4, tp: 8}", "s.yaml");
  ASSERT_TRUE(strategy.ok()) << strategy.status();
  EXPECT_EQ(strategy->mesh.cp, 4);
  EXPECT_EQ(strategy->mesh.ranks(), 64);
  EXPECT_EQ(strategy->mesh.dataParallel(), 2);
  EXPECT_EQ(strategy->mesh.ofSample(), 32);
}

TEST(StrategyReader, AxesThatAreNotSupported) {
  EXPECT_THAT(errorOf("mesh: {dp: 2, ep: 2}"),
              HasSubstr("s.yaml:1:19: 'mesh.ep' is not supported yet; the axes of a mesh are dp, "
                        "fsdp, cp and tp"));
}

TEST(StrategyReader, SizesOutOfRange) {
  EXPECT_THAT(errorOf("mesh: {dp: 0}"), HasSubstr("s.yaml:1:12: 'mesh.dp' must be 1 to 1048576"));
  EXPECT_THAT(errorOf("mesh: {dp: two}"), HasSubstr("'mesh.dp' must be a whole number"));
  EXPECT_THAT(errorOf("mesh: {dp: 1048577}"), HasSubstr("not 1048577"));
  EXPECT_THAT(errorOf("mesh: {dp: 1048576, tp: 2}"),
              HasSubstr("s.yaml:1:7: 'mesh' has more than 1048576 ranks"));
  EXPECT_THAT(errorOf("mesh: {dp: 2}\nremat: auto"),
              HasSubstr("s.yaml:2:8: 'remat' auto keeps what fits: give memory"));
  EXPECT_THAT(errorOf(replaced(kFull, "remat: full", "remat: ful")),
              HasSubstr("'remat' can't be 'ful'"));
  EXPECT_THAT(errorOf(replaced(kFull, "zero: 2", "zero: 4")),
              HasSubstr("s.yaml:2:7: 'zero' must be 0 to 3, not 4"));
  EXPECT_THAT(errorOf(replaced(kFull, "hsdp: 2", "hsdp: 1")), HasSubstr("'hsdp' must be 2 to"));
}

TEST(StrategyReader, WhatDoesNotFitTogetherIsNamedAtItsPlace) {
  EXPECT_THAT(errorOf(replaced(kFull, "zero: 2", "zero: 0")),
              HasSubstr("s.yaml:3:7: 'hsdp' needs"));
  EXPECT_THAT(errorOf(replaced(kFull, "hsdp: 2", "hsdp: 3")),
              HasSubstr("s.yaml:1:7: 'mesh' has dp: 4, which is no multiple of hsdp (3)"));
  EXPECT_THAT(errorOf(replaced(kFull, "dp: 8", "dp: 4")),
              HasSubstr("s.yaml:6:68: 'modules.vision.mesh' has 4 ranks, but 'mesh' has 8"));
  EXPECT_THAT(errorOf("mesh: {dp: 2}\nsequence_parallel: true"),
              HasSubstr("s.yaml:2:20: 'sequence_parallel' splits"));
}

TEST(StrategyReader, PatternsComeOnce) {
  EXPECT_THAT(errorOf(replaced(kFull, "model.vision.*", "vision_tower.*")),
              HasSubstr("s.yaml:6:43: the pattern 'vision_tower.*' comes twice"));
  EXPECT_THAT(errorOf(replaced(kFull, "*.q_proj.weight", "lm_head.weight")),
              HasSubstr("s.yaml:9:19: the pattern 'lm_head.weight' comes twice"));
  EXPECT_THAT(errorOf(replaced(kFull, "[\"*.q_proj.weight\"]", "[]")),
              HasSubstr("'shardings[1].parameters' must name at least one pattern"));
}

TEST(StrategyReader, RulesAreWhole) {
  EXPECT_THAT(errorOf("mesh: {}\nmodules: {vision: {mesh: {}}}"),
              HasSubstr("missing key 'modules.vision.parameters'"));
  EXPECT_THAT(errorOf("mesh: {}\nmodules: {vision: {parameters: a}}"),
              HasSubstr("missing key 'modules.vision.mesh'"));
  EXPECT_THAT(errorOf("mesh: {}\nmodules: {\"\": {parameters: a, mesh: {}}}"),
              HasSubstr("a module needs a name"));
  EXPECT_THAT(errorOf("mesh: {}\nshardings: {parameters: a, tp: 0}"),
              HasSubstr("s.yaml:2:12: 'shardings' must be a list"));
  EXPECT_THAT(errorOf("mesh: {}\nshardings: [{parameters: a}]"),
              HasSubstr("missing key 'shardings[0].tp'"));
  for (const char* tp : {"-1", "64", "all", "[0]"}) {
    EXPECT_THAT(errorOf(std::string("mesh: {}\nshardings: [{parameters: a, tp: ") + tp + "}]"),
                HasSubstr("'shardings[0].tp' must be `none` or the number of a dimension"))
        << tp;
  }
}

// docs/strategy.md and the file that it names.
TEST(StrategyReader, ReadsTheExamplesOfTheDocs) {
  const std::string root = ORIEL_SOURCE_DIR;
  EXPECT_TRUE(readStrategy(root + "/models/llava_tiny/strategy.yaml").ok());
  absl::StatusOr<std::string> page = readYamlText(root + "/docs/strategy.md", "page");
  ASSERT_TRUE(page.ok()) << page.status();
  const std::string fence = "```yaml\n";
  int blocks = 0;
  for (size_t at = page->find(fence); at != std::string::npos; at = page->find(fence, at + 1)) {
    const size_t begin = at + fence.size();
    const std::string block = page->substr(begin, page->find("```", begin) - begin);
    EXPECT_TRUE(parseStrategy(block, "block").ok())
        << parseStrategy(block, "block").status() << "\n"
        << block;
    ++blocks;
  }
  EXPECT_EQ(blocks, 5);
}

TEST(StrategyReader, FilesThatCanNotBeRead) {
  EXPECT_EQ(readStrategy("nowhere.yaml").status(),
            absl::NotFoundError("can't read the strategy 'nowhere.yaml'"));
  EXPECT_EQ(readStrategy(::testing::TempDir()).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace oriel
