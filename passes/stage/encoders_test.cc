#include "passes/stage/encoders.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/oriel/oriel.h"
#include "passes/stage/model_text_testing.h"
#include "passes/stage/part_stages.h"

namespace oriel {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> layers(const std::string& tower, int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back(absl::StrCat(tower, ".layers.", i, ".weight"));
  return names;
}

class EncodersTest : public ModelTextTest {
 protected:
  Encoders encodersIn(const ModelText& model) {
    mlir::func::FuncOp main = mainOf(model);
    if (!main) return {};
    const ModelParts parts = findParts(main, {}, Strategy());
    towers_ = towersText(parts);
    return encodersOf(main, parts);
  }

  std::string towers_;  // of the last one
};

// The pattern has the embedding too, which is in no block.
TEST_F(EncodersTest, AnEncoderBesideALanguageModel) {
  ModelText model;
  // With another number of samples each, so that they are no layers of the tower.
  const std::string embedded = model.linear(model.input(1), model.parameter("vision.embed.weight"));
  const std::string image =
      model.tower(model.concat(embedded, model.input(1)), layers("vision", 2));
  const std::string projected =
      model.linear(model.concat(image, model.input(1)), model.parameter("projector.weight"));
  model.tower(model.concat(projected, model.input(2)), layers("llm", 4));
  const Encoders encoders = encodersIn(model);
  EXPECT_EQ(towers_, "'vision.layers' (2 blocks), 'llm.layers' (4 blocks)");
  ASSERT_EQ(encoders.modules.size(), 1u);
  EXPECT_EQ(encoders.modules[0].name, "vision");
  EXPECT_THAT(encoders.modules[0].parameters, ElementsAre("vision.*"));
  EXPECT_FALSE(encoders.modules[0].mesh);
  EXPECT_GT(encoders.share, 0);
  EXPECT_LT(encoders.share, 2. / 6);
}

// By time and not by place: the longest is in front.
TEST_F(EncodersTest, AllButTheLongestAreEncoders) {
  ModelText model;
  const std::string text = model.tower(model.input(3), layers("llm", 6));
  const std::string image = model.tower(model.input(1), layers("vision", 2));
  const std::string sound = model.tower(model.input(2), layers("audio", 3));
  model.concat(model.concat(text, image), sound);
  const Encoders encoders = encodersIn(model);
  ASSERT_EQ(encoders.modules.size(), 2u) << towers_;
  EXPECT_EQ(encoders.modules[0].name, "audio");
  EXPECT_THAT(encoders.modules[0].parameters, ElementsAre("audio.*"));
  EXPECT_EQ(encoders.modules[1].name, "vision");
  EXPECT_THAT(encoders.modules[1].parameters, ElementsAre("vision.*"));
  EXPECT_GT(encoders.share, 2. / 11);
  EXPECT_LT(encoders.share, 6. / 11);
}

TEST_F(EncodersTest, OneTowerHasNone) {
  ModelText model;
  model.tower(model.input(2), layers("llm", 4));
  const Encoders encoders = encodersIn(model);
  EXPECT_EQ(towers_, "'llm.layers' (4 blocks)");
  EXPECT_THAT(encoders.modules, IsEmpty());
  EXPECT_EQ(encoders.share, 0);
}

TEST_F(EncodersTest, WhereNothingRepeatsThereIsNone) {
  ModelText model;
  const std::string image = model.linear(model.input(1), model.parameter("vision.weight"));
  const std::string text = model.linear(model.input(2), model.parameter("llm.weight"));
  model.concat(image, text);
  EXPECT_THAT(encodersIn(model).modules, IsEmpty());
}

// A rank has one layout of a parameter, so a tower whose parameters another one reads can't be
// apart.
TEST_F(EncodersTest, ATowerOfAnothersParametersIsNone) {
  ModelText model;
  const std::string image = model.tower(model.input(1), layers("llm", 2));
  model.tower(model.concat(image, model.input(2)), layers("llm", 4));
  const Encoders encoders = encodersIn(model);
  EXPECT_THAT(towers_, testing::HasSubstr("(2 blocks)"));
  EXPECT_THAT(encoders.modules, IsEmpty());
  EXPECT_EQ(encoders.share, 0);
}

TEST_F(EncodersTest, WhatIsSharedStaysOutOfThePatterns) {
  ModelText model;
  std::string value = model.input(1);
  for (const char* name : {"vision.0.weight", "vision.1.weight"}) {
    value = model.tower(value, {name, "vision.common.weight"});
  }
  value = model.concat(value, model.input(2));
  for (const char* name : {"llm.0.weight", "llm.1.weight", "llm.2.weight"}) {
    value = model.tower(value, {name, "vision.common.weight"});
  }
  const Encoders encoders = encodersIn(model);
  ASSERT_EQ(encoders.modules.size(), 1u) << towers_;
  EXPECT_THAT(encoders.modules[0].parameters, ElementsAre("vision.0.weight", "vision.1.weight"));
}

}  // namespace
}  // namespace oriel
