#include "passes/strategy/strategy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "passes/config/quantity.h"

namespace oriel {
namespace {

using ::testing::HasSubstr;

Strategy ofMesh(Mesh mesh) {
  Strategy strategy;
  strategy.mesh = mesh;
  return strategy;
}

std::string problemOf(const Strategy& strategy) {
  std::optional<StrategyProblem> problem = findProblem(strategy);
  return problem ? problem->key + " " + problem->message : "";
}

TEST(Strategy, DataParallelismIsWhatAllModulesHave) {
  Strategy strategy = ofMesh({2, 1, 2});
  EXPECT_EQ(strategy.dataParallel(), 2);
  strategy.modules = {{"vision", {"vision.*"}, Mesh{4, 1, 1}}};
  EXPECT_EQ(strategy.dataParallel(), 2);
  strategy.modules = {{"vision", {"vision.*"}, Mesh{1, 1, 4}}};
  EXPECT_EQ(strategy.dataParallel(), 1);
  EXPECT_EQ(ofMesh({2, 4, 2}).dataParallel(), 8);
}

TEST(Strategy, HsdpSplitsDpIntoCopiesAndGroups) {
  Strategy strategy = ofMesh({8, 1, 2});
  EXPECT_EQ(strategy.resolved(strategy.mesh), (Mesh{8, 1, 2}));
  strategy.hsdp = 4;
  EXPECT_EQ(strategy.resolved(strategy.mesh), (Mesh{2, 4, 2}));
}

TEST(Strategy, SoundOnesHaveNoProblem) {
  Strategy strategy = ofMesh({4, 1, 2});
  strategy.zero = 3;
  strategy.hsdp = 2;
  strategy.sequenceParallel = true;
  strategy.modules = {{"vision", {"vision.*"}, Mesh{8, 1, 1}}};
  EXPECT_EQ(problemOf(strategy), "");
}

TEST(Strategy, HsdpNeedsZeroAndDividesDp) {
  Strategy strategy = ofMesh({6, 1, 1});
  strategy.hsdp = 4;
  EXPECT_THAT(problemOf(strategy), HasSubstr("hsdp needs something that is sharded"));
  strategy.zero = 1;
  EXPECT_THAT(problemOf(strategy), HasSubstr("mesh has dp: 6, which is no multiple of hsdp (4)"));
  strategy.mesh = {4, 2, 1};
  EXPECT_THAT(problemOf(strategy), HasSubstr("mesh has an fsdp axis, and hsdp"));
}

TEST(Strategy, HsdpDividesTheDpOfModulesToo) {
  Strategy strategy = ofMesh({4, 1, 1});
  strategy.zero = 1;
  strategy.hsdp = 4;
  strategy.modules = {{"vision", {"vision.*"}, Mesh{2, 1, 2}}};
  EXPECT_THAT(problemOf(strategy), HasSubstr("modules.vision.mesh has dp: 2"));
}

TEST(Strategy, FsdpNeedsZero) {
  EXPECT_THAT(problemOf(ofMesh({1, 4, 1})), HasSubstr("mesh has fsdp: 4, but zero is 0"));
}

TEST(Strategy, SequenceParallelismNeedsTp) {
  Strategy strategy = ofMesh({2, 1, 1});
  strategy.sequenceParallel = true;
  EXPECT_THAT(problemOf(strategy), HasSubstr("sequence_parallel splits"));
  strategy.modules = {{"language", {"language.*"}, Mesh{1, 1, 2}}};
  EXPECT_EQ(problemOf(strategy), "");
}

TEST(Strategy, PaddingNeedsTp) {
  Strategy strategy = ofMesh({2, 1, 1});
  strategy.padding = true;
  EXPECT_EQ(problemOf(strategy), "padding is for tp ranks, but no mesh has tp above 1");
  strategy.mesh = Mesh{1, 1, 2};
  EXPECT_EQ(problemOf(strategy), "");
}

TEST(Strategy, RanksAreBounded) {
  EXPECT_EQ(problemOf(ofMesh({kMaxRanks, 1, 1})), "");
  EXPECT_THAT(problemOf(ofMesh({kMaxRanks, 1, 2})), HasSubstr("mesh has more than 1048576 ranks"));
  EXPECT_THAT(problemOf(ofMesh({kMaxRanks, kMaxRanks, kMaxRanks})),
              HasSubstr("mesh has more than 1048576 ranks"));
}

TEST(Strategy, ModulesHaveTheSameRanks) {
  Strategy strategy = ofMesh({2, 1, 2});
  strategy.modules = {{"vision", {"vision.*"}, Mesh{2, 1, 1}}};
  EXPECT_THAT(problemOf(strategy), HasSubstr("modules.vision.mesh has 2 ranks, but 'mesh' has 4"));
}

TEST(Strategy, MeshesMustHaveACommonRefinement) {
  Strategy strategy = ofMesh({4, 1, 3});
  strategy.modules = {{"vision", {"vision.*"}, Mesh{3, 1, 4}}};
  EXPECT_THAT(
      problemOf(strategy),
      HasSubstr("modules.vision.mesh can't share the ranks with 'mesh': one has groups of 3 "
                "ranks, the other of 4"));
  strategy.modules = {{"vision", {"vision.*"}, Mesh{12, 1, 1}},
                      {"audio", {"audio.*"}, Mesh{2, 1, 6}}};
  EXPECT_EQ(problemOf(strategy), "");
  strategy.modules[0].mesh = {6, 1, 2};
  EXPECT_THAT(problemOf(strategy), HasSubstr("modules.vision.mesh can't share"));
}

Strategy ofStages(Mesh mesh, int64_t stages, ScheduleKind schedule = ScheduleKind::kOneFOneB) {
  Strategy strategy = ofMesh(mesh);
  strategy.pipeline.emplace().stages = stages;
  strategy.pipeline->setSchedule(schedule, std::nullopt);
  return strategy;
}

TEST(Strategy, RanksAreThoseOfAllGrids) {
  EXPECT_EQ(Strategy().grids(), 1);
  Strategy strategy = ofStages({2, 1, 2}, 3);
  EXPECT_EQ(strategy.grids(), 3);
  EXPECT_EQ(strategy.ranks(), 12);
  strategy = ofStages({2, 1, 2}, 4, ScheduleKind::kInterleaved);
  EXPECT_EQ(strategy.stageCount(), 4);
  EXPECT_EQ(strategy.grids(), 2);
  EXPECT_EQ(strategy.ranks(), 8);
}

TEST(Strategy, AStageMayHaveAMeshOfItsOwn) {
  Strategy strategy = ofStages({1, 1, 4}, 3);
  strategy.pipeline->named = {
      {{"vision"}, Mesh{2, 1, 1}}, {{"llm.0"}, std::nullopt}, {{"llm.1"}, Mesh{1, 1, 6}}};
  EXPECT_EQ(problemOf(strategy), "");
  EXPECT_EQ(strategy.meshOfGrid(0), (Mesh{2, 1, 1}));
  EXPECT_EQ(strategy.meshOfGrid(1), strategy.mesh);
  EXPECT_EQ(strategy.ranks(), 12);
  EXPECT_EQ(strategy.dataParallel(), 1);
  EXPECT_EQ(strategy.commonTensorParallel(nullptr), 12);
  strategy.pipeline->named[1].mesh = Mesh{1, 4, 1};
  EXPECT_THAT(problemOf(strategy), HasSubstr("stages[1].mesh has fsdp: 4, but zero is 0"));
}

TEST(Strategy, AModuleIsOnOneOfTheGrids) {
  Strategy strategy = ofStages({1, 1, 4}, 2);
  strategy.pipeline->named = {{{"vision"}, Mesh{2, 1, 1}}, {{"llm"}, std::nullopt}};
  strategy.modules = {{"head", {"head.*"}, Mesh{1, 1, 2}}, {"llm", {"llm.*"}, std::nullopt}};
  EXPECT_EQ(problemOf(strategy), "");
  EXPECT_EQ(strategy.commonTensorParallel(&strategy.modules[0]), 2);
  EXPECT_EQ(strategy.commonTensorParallel(&strategy.modules[1]), 4);
  strategy.modules[0].mesh = Mesh{1, 1, 3};
  EXPECT_THAT(problemOf(strategy),
              HasSubstr("modules.head.mesh has 3 ranks, as many as no grid has"));
}

TEST(Strategy, InterleavingNeedsItsScheduleAndSeveralGrids) {
  using Kind = ScheduleKind;
  EXPECT_EQ(problemOf(ofStages({1, 1, 1}, 4, Kind::kInterleaved)), "");
  EXPECT_THAT(problemOf(ofStages({1, 1, 1}, 5, Kind::kInterleaved)),
              HasSubstr("stages makes 5, which is no multiple of interleave (2)"));
  EXPECT_THAT(problemOf(ofStages({1, 1, 1}, 2, Kind::kInterleaved)),
              HasSubstr("stages makes 2, all of them on one grid"));
  Strategy strategy = ofStages({1, 1, 1}, 4);
  strategy.pipeline->setSchedule(Kind::kGPipe, 2);
  EXPECT_THAT(problemOf(strategy),
              HasSubstr("interleave of 2 needs the schedule interleaved, not gpipe"));
  strategy.pipeline->setSchedule(Kind::kInterleaved, 1);
  EXPECT_THAT(problemOf(strategy), HasSubstr("interleave is the number of stages on each grid"));
  strategy.pipeline->setSchedule(std::nullopt, 2);
  strategy.pipeline->named = {{{"0"}, Mesh{}}, {{"1"}, {}}, {{"2"}, {}}, {{"3"}, {}}};
  EXPECT_THAT(problemOf(strategy), HasSubstr("stages[0].mesh can't be with interleave"));
}

TEST(Strategy, StagesSideBySideAreAlike) {
  Strategy strategy = ofStages({2, 1, 2}, 2);
  EXPECT_TRUE(strategy.places().areRanks());
  strategy.pipeline->placement = Placement::kDpOutermost;
  EXPECT_EQ(problemOf(strategy), "");
  EXPECT_EQ(strategy.places().of(2), 4);
  EXPECT_EQ(strategy.places().of(4), 2);
  strategy.pipeline->named = {{{"a"}, Mesh{1, 2, 2}}, {{"b"}, std::nullopt}};
  strategy.zero = 1;
  EXPECT_EQ(problemOf(strategy), "");
  strategy.pipeline->named[0].mesh = Mesh{4, 1, 1};
  EXPECT_EQ(problemOf(strategy),
            "placement dp_outermost needs stages of as many ranks and the same tp and cp, but "
            "'stages[0].mesh' has 4 and tp: 1, 'mesh' 4 and tp: 2");
  strategy.pipeline->named[0].mesh = Mesh{1, 1, 2};
  EXPECT_THAT(problemOf(strategy), HasSubstr("'stages[0].mesh' has 2 and tp: 2, 'mesh' 4"));
  strategy = ofStages({4, 1, 1}, 1);
  strategy.pipeline->placement = Placement::kDpOutermost;
  EXPECT_THAT(problemOf(strategy), HasSubstr("placement dp_outermost lays the stages"));
}

TEST(Strategy, RanksOfAllStagesAreBounded) {
  EXPECT_EQ(problemOf(ofStages({kMaxRanks / 4, 1, 1}, 4)), "");
  EXPECT_THAT(problemOf(ofStages({kMaxRanks / 4, 1, 1}, 5)),
              HasSubstr("stages has together more than 1048576 ranks"));
}

// Products and common multiples of sizes that are sound each by itself.
TEST(Strategy, SizesTogetherAreBounded) {
  EXPECT_THAT(problemOf(ofMesh({kMaxRanks, kMaxRanks, kMaxRanks, 16})),
              HasSubstr("mesh has more than 1048576 ranks"));
  EXPECT_EQ((Mesh{kMaxRanks, kMaxRanks, kMaxRanks, 16}).ranks(),
            std::numeric_limits<int64_t>::max());
  Strategy strategy = ofStages({1, 1, 1}, 5);
  for (int64_t tp : {16381, 16369, 16363, 16361, 16349}) {
    Pipeline::Stage stage;
    stage.blocks = {std::to_string(tp)};
    stage.mesh = Mesh{1, 1, tp};
    strategy.pipeline->named.push_back(stage);
  }
  EXPECT_THAT(problemOf(strategy),
              HasSubstr("stages has sizes of tp without a common multiple up to 1048576"));
  for (Pipeline::Stage& stage : strategy.pipeline->named) stage.mesh = Mesh{1, 1, 1024};
  EXPECT_EQ(problemOf(strategy), "");
}

TEST(Strategy, WhatIsLeftOutOfAScheduleFollows) {
  Pipeline pipeline;
  pipeline.setSchedule(std::nullopt, std::nullopt);
  EXPECT_EQ(pipeline.schedule, ScheduleKind::kOneFOneB);
  EXPECT_EQ(pipeline.interleave, 1);
  pipeline.setSchedule(ScheduleKind::kInterleaved, std::nullopt);
  EXPECT_EQ(pipeline.interleave, 2);
  pipeline.setSchedule(std::nullopt, 3);
  EXPECT_EQ(pipeline.schedule, ScheduleKind::kInterleaved);
  EXPECT_EQ(stageCountOf("4"), 4);
  EXPECT_EQ(stageCountOf("auto 4"), 4);
  for (const char* text : {"", "auto", "0", "1048577", "vision"}) {
    EXPECT_EQ(stageCountOf(text), std::nullopt) << text;
  }
}

TEST(Strategy, PatternsFindModulesAndShardings) {
  Strategy strategy;
  strategy.modules = {{"vision", {"vision.*", "patch.?"}, {}}};
  strategy.shardings = {{{"*head*"}, 0}};
  ASSERT_NE(moduleOf(strategy, "patch.w"), nullptr);
  EXPECT_EQ(moduleOf(strategy, "patch.w")->name, "vision");
  EXPECT_EQ(moduleOf(strategy, "language.vision.w"), nullptr);
  ASSERT_NE(shardingOf(strategy, "lm_head.weight"), nullptr);
  EXPECT_EQ(shardingOf(strategy, "lm_head.weight")->tp, 0);
  EXPECT_EQ(shardingOf(strategy, "norm.weight"), nullptr);
}

TEST(Strategy, PatternsAreHeldAgainstTheModel) {
  const std::vector<std::string> names = {"vision.w", "language.w", "lm_head.w"};
  Strategy strategy;
  EXPECT_TRUE(checkPatterns(strategy, names).ok());
  strategy.modules = {{"vision", {"vision.*"}, {}}};
  strategy.shardings = {{{"lm_head.w"}, std::nullopt}, {{"language.*"}, 0}};
  EXPECT_TRUE(checkPatterns(strategy, names).ok());

  strategy.modules[0].parameters = {"vison.*"};
  EXPECT_THAT(std::string(checkPatterns(strategy, names).message()),
              HasSubstr("the pattern 'vison.*' in 'modules.vision' of the strategy matches no "
                        "parameter; did you mean 'vision.w'?"));
  strategy.modules[0].parameters = {"vision.*"};
  strategy.shardings[1].parameters = {"l*"};
  EXPECT_THAT(std::string(checkPatterns(strategy, names).message()),
              HasSubstr("the parameter 'lm_head.w' matches patterns in both 'shardings[0]' and "
                        "'shardings[1]' of the strategy"));
}

TEST(Overlap, BucketsAreAnEighthUpToALimit) {
  EXPECT_EQ(Overlap().bucketBytes(80), 10);
  EXPECT_EQ(Overlap().prefetchBytes(80), 20);
  EXPECT_EQ(Overlap().bucketBytes(int64_t{1} << 40), 25 << 20);
  EXPECT_EQ((Overlap{7, std::nullopt}).prefetchBytes(80), 14);
  EXPECT_EQ((Overlap{7, 1}).prefetchBytes(80), 1);
}

}  // namespace
}  // namespace oriel
