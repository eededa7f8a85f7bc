#include "passes/stage/block_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace oriel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kVision[] = "model.vision_tower.encoder.layers";
constexpr char kLanguage[] = "model.language_model.layers";

BlockNames llava() { return BlockNames({kVision, kVision, kLanguage, kLanguage, kLanguage}); }

absl::StatusOr<std::vector<int64_t>> stagesOf(const BlockNames& names,
                                              const std::vector<std::vector<std::string>>& stages) {
  std::vector<Pipeline::Stage> list;
  for (const std::vector<std::string>& blocks : stages) list.push_back({blocks, std::nullopt});
  return names.stagesOf(list);
}

std::string errorOf(const BlockNames& names, const std::vector<std::vector<std::string>>& stages) {
  absl::StatusOr<std::vector<int64_t>> result = stagesOf(names, stages);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(result.status().message());
}

TEST(BlockNames, CommonPrefixIsOfWholeWords) {
  EXPECT_EQ(commonPrefix({"a.layers.0.q.weight", "a.layers.1.q.bias"}), "a.layers");
  EXPECT_EQ(commonPrefix({"a.layer1.w", "a.layer2.w"}), "a");
  EXPECT_EQ(commonPrefix({"a.layers.0.w", "onnx::MatMul_7", "a.layers.1.w"}), "a.layers");
  EXPECT_EQ(commonPrefix({"a.w", "b.w"}), "");
  EXPECT_EQ(commonPrefix({"w"}), "");
  EXPECT_EQ(commonPrefix({}), "");
}

TEST(BlockNames, PatternsMatchOneTowerAlone) {
  const std::vector<std::string> language = {"model.language.layers.0.w", "model.norm"};
  EXPECT_THAT(patternsOf({"model.vision.layers.0.w", "model.vision.layers.1.w"}, language),
              ElementsAre("model.vision.*"));
  EXPECT_THAT(patternsOf({"vision.layers.0.w", "onnx::MatMul_7"}, language),
              ElementsAre("vision.*", "onnx::MatMul_7"));
  EXPECT_THAT(patternsOf({"model.a", "model.b"}, language), ElementsAre("model.a", "model.b"));
  EXPECT_THAT(patternsOf({"w1", "w2"}, language), ElementsAre("w1", "w2"));
}

TEST(BlockNames, ShortNamesAreWordsOfOneTower) {
  EXPECT_EQ(llava().nameOf(1), "vision_tower.1");
  EXPECT_EQ(llava().nameOf(2), "language_model.0");
  EXPECT_EQ(BlockNames({"layers", "layers"}).nameOf(1), "layers.1");
  EXPECT_EQ(llava().list(),
            "'model.vision_tower.encoder.layers' (2 blocks), "
            "'model.language_model.layers' (3 blocks)");
}

TEST(BlockNames, AShortNameIsNotTheWholeOfAnother) {
  const BlockNames names({"model", "model", "model.visual.blocks", "model.visual.blocks"});
  EXPECT_EQ(names.nameOf(0), "model.0");
  EXPECT_EQ(names.nameOf(2), "visual.0");
}

TEST(BlockNames, RangesAreDescribed) {
  EXPECT_EQ(llava().describe({0, 1, 2}), "vision_tower + language_model.0");
  EXPECT_EQ(llava().describe({3, 4}), "language_model.1-2");
  EXPECT_EQ(llava().describe({}), "");
}

TEST(BlockNames, NamesAreWordsOrTheirBeginning) {
  for (const char* vision : {"vision", "vision_tower", "encoder", "model.vision_tower",
                             "vision_tower.encoder.layers", kVision}) {
    EXPECT_THAT(*stagesOf(llava(), {{vision}, {"language.0-2"}}), ElementsAre(0, 0, 1, 1, 1))
        << vision;
  }
}

TEST(BlockNames, StagesAreRangesOfTowersAndOfAllBlocks) {
  EXPECT_THAT(*stagesOf(llava(), {{"vision", "language.0"}, {"language.1-2"}}),
              ElementsAre(0, 0, 0, 1, 1));
  EXPECT_THAT(*stagesOf(llava(), {{"0"}, {"1-3"}, {"4"}}), ElementsAre(0, 1, 1, 1, 2));
  EXPECT_THAT(*stagesOf(llava(), {{"language.0", "vision"}, {"language.1", "language.2"}}),
              ElementsAre(0, 0, 0, 1, 1));
}

TEST(BlockNames, UnknownNamesListWhatThereIs) {
  EXPECT_THAT(errorOf(llava(), {{"vison"}, {"language"}}),
              AllOf(HasSubstr("stages[0]: no blocks are called 'vison': the model has"),
                    HasSubstr("'model.language_model.layers' (3 blocks)")));
  EXPECT_THAT(errorOf(llava(), {{"vision"}, {"model.3"}}),
              HasSubstr("stages[1]: 'model' could be 'model.vision_tower.encoder.layers' or "));
}

TEST(BlockNames, WhatIsAroundTheBlocks) {
  EXPECT_THAT(*stagesOf(llava(), {{"begin"}, {"vision", "language.0"}, {"language.1-2"}, {"end"}}),
              ElementsAre(1, 1, 1, 2, 2));
  EXPECT_THAT(*stagesOf(llava(), {{"begin", "vision"}, {"language", "end"}}),
              ElementsAre(0, 0, 1, 1, 1));
  EXPECT_THAT(errorOf(llava(), {{"vision"}, {"begin", "language"}}),
              HasSubstr("stages[1]: 'begin' is what is in front of all blocks, and belongs to the "
                        "first stage"));
  EXPECT_THAT(errorOf(llava(), {{"vision"}, {"end"}, {"language"}}),
              HasSubstr("stages[1]: 'end' is what is behind all blocks, and belongs to the last"));
  EXPECT_THAT(errorOf(llava(), {{"vision"}, {"head"}}), HasSubstr("`end` what is behind them"));
  EXPECT_TRUE(llava().isOnly({{"end", "end"}, std::nullopt}, kEnd));
  EXPECT_FALSE(llava().isOnly({{"language.2", "end"}, std::nullopt}, kEnd));
  const BlockNames named({"end", "other"});
  EXPECT_FALSE(named.isOnly({{"end"}, std::nullopt}, kEnd));
  EXPECT_THAT(*stagesOf(named, {{"end"}, {"other"}}), ElementsAre(0, 1));
}

TEST(BlockNames, BlocksThatAreNotThere) {
  EXPECT_THAT(errorOf(llava(), {{"vision"}, {"language.0-3"}}),
              HasSubstr("there is no block 3 for 'language.0-3': 'model.language_model.layers' has "
                        "3 blocks, from 0"));
  EXPECT_THAT(errorOf(llava(), {{"0-5"}}), HasSubstr("the model has 5 blocks, from 0"));
  EXPECT_THAT(errorOf(llava(), {{"vision"}, {"language.2-0"}}),
              HasSubstr("'language.2-0' ends before it begins"));
  EXPECT_THAT(errorOf(llava(), {{"vision.99999999999999999999"}}), HasSubstr("no blocks"));
}

TEST(BlockNames, ABlockIsNotCut) {
  EXPECT_THAT(errorOf(llava(), {{"vision", "language.1.mlp"}, {"language.2"}}),
              HasSubstr("stages[0]: 'language.1.mlp' is inside of block 1 of "
                        "'model.language_model.layers', and a stage has whole blocks: write "
                        "'language.1'"));
}

TEST(BlockNames, EveryBlockIsInOneStageInOrder) {
  EXPECT_THAT(errorOf(llava(), {{"vision"}, {"language.0-1"}, {"language.1-2"}}),
              HasSubstr("'language_model.1' is in both stages[1] and stages[2]"));
  EXPECT_THAT(errorOf(llava(), {{"vision", "0"}, {"language"}}),
              HasSubstr("'vision_tower.0' is in stages[0] twice"));
  EXPECT_THAT(errorOf(llava(), {{"vision"}, {"language.0"}, {"language.2"}}),
              HasSubstr("'language_model.1' is in none of the stages"));
  EXPECT_THAT(errorOf(llava(), {{"language"}, {"vision"}}),
              HasSubstr("'language_model.0' is in stages[0] and 'vision_tower.1', which comes "
                        "before it, in stages[1]"));
}

TEST(BlockNames, TowersOfOneNameAreOne) {
  const BlockNames names({"llm", "vision", "llm"});
  EXPECT_EQ(names.nameOf(2), "llm.1");
  EXPECT_THAT(*stagesOf(names, {{"llm.0", "vision"}, {"llm.1"}}), ElementsAre(0, 0, 1));
}

}  // namespace
}  // namespace oriel
