#include "driver/global_batch.h"

#include "runtime/base/status_testing.h"

namespace oriel::driver {
namespace {

using runtime::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr int64_t kMicro = 2;

Recipe recipeOf(std::map<std::string, int64_t> bind) {
  Recipe recipe;
  recipe.microBatch = kMicro;
  recipe.globalBatch = 16;
  recipe.bind = std::move(bind);
  recipe.inputs = {{"labels", "int64", {kMicro, 64}}};
  return recipe;
}

Strategy strategyOf(Mesh mesh) {
  Strategy strategy;
  strategy.mesh = mesh;
  return strategy;
}

const ModelInput kTokens = {"input_ids", {{0, {"batch"}}, {0, {"sequence"}}}};

TEST(CheckBatchTest, RanksThatShareSamplesDoNotCount) {
  ORIEL_EXPECT_OK(checkBatch(recipeOf({}), strategyOf({8, 1, 1})));
  ORIEL_EXPECT_OK(checkBatch(recipeOf({}), strategyOf({2, 2, 16})));
  EXPECT_THAT(checkBatch(recipeOf({}), strategyOf({4, 4, 1})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the global batch of 16 samples is not divided by 32 (micro batch "
                                 "2 on 16 data-parallel ranks)")));
}

TEST(CheckBatchTest, ASumTakesOneMicrobatch) {
  Recipe recipe = recipeOf({});
  recipe.loss.kind = Recipe::LossKind::kSum;
  recipe.microBatch = recipe.globalBatch;
  ORIEL_EXPECT_OK(checkBatch(recipe, strategyOf({1, 1, 4})));
  recipe.microBatch = recipe.globalBatch / 2;
  ORIEL_EXPECT_OK(checkBatch(recipe, strategyOf({2, 1, 1})));
  EXPECT_THAT(checkBatch(recipe, strategyOf({1, 1, 1})),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("one microbatch")));
  recipe.loss.overMicrobatch = true;
  ORIEL_EXPECT_OK(checkBatch(recipe, strategyOf({1, 1, 1})));
}

TEST(CheckBatchTest, AMicrobatchIsSplitOverTheRanksOfEachModule) {
  Strategy strategy = strategyOf({2, 1, 4});
  strategy.modules = {{"vision", {"v*"}, Mesh{4, 1, 2}}};
  ORIEL_EXPECT_OK(checkBatch(recipeOf({}), strategy));
  strategy.modules[0].mesh = {8, 1, 1};
  EXPECT_THAT(checkBatch(recipeOf({}), strategy),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the mesh of module 'vision' has 8 data-parallel ranks, but a "
                                 "microbatch has 4 samples (batch.micro of 2 on the 2")));
  // Two images each, of one of two kinds: those can be divided.
  Recipe recipe = recipeOf({});
  recipe.images = {{"sounds", 1, 8}, {"pixels", 2, 49}};
  ORIEL_EXPECT_OK(checkBatch(recipe, strategy));
}

Strategy withMicrobatches(Mesh mesh, int64_t stages, int64_t microbatches) {
  Strategy strategy = strategyOf(mesh);
  strategy.pipeline.emplace().stages = stages;
  strategy.pipeline->microbatches = microbatches;
  return strategy;
}

TEST(CheckBatchTest, MicrobatchesDivideTheGlobalBatch) {
  ORIEL_EXPECT_OK(checkBatch(recipeOf({}), withMicrobatches({2, 1, 1}, 4, 8)));
  for (Mesh mesh : {Mesh{4, 1, 1}, Mesh{3, 1, 1}}) {
    EXPECT_THAT(checkBatch(recipeOf({}), withMicrobatches(mesh, 4, 8)),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("the global batch of 16 samples is not divided by 8 "
                                   "microbatches x ")));
  }
}

TEST(CheckBatchTest, AMicrobatchIsSplitOverTheRanksOfEachStage) {
  Strategy strategy = withMicrobatches({2, 1, 1}, 2, 4);
  strategy.pipeline->named = {{{"vision"}, Mesh{4, 1, 1}}, {{"llm"}, std::nullopt}};
  ORIEL_EXPECT_OK(checkBatch(recipeOf({}), strategy));
  strategy.pipeline->microbatches = 8;
  EXPECT_THAT(checkBatch(recipeOf({}), strategy),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the mesh of stage 0 has 4 data-parallel ranks, but a microbatch "
                                 "has 2 samples (batch.micro of 1 on the 2")));
}

TEST(CheckBatchTest, StagesCutWhatAllHaveInCommonFurther) {
  Strategy strategy = withMicrobatches({2, 1, 1}, 2, 2);
  strategy.pipeline->named = {{{"vision"}, Mesh{3, 1, 1}}, {{"llm"}, std::nullopt}};
  Recipe recipe = recipeOf({});
  recipe.globalBatch = 12;
  EXPECT_THAT(checkBatch(recipe, strategy),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the mesh of stage 0 has 3 data-parallel ranks, which is no "
                                 "multiple of the 2 that all modules and stages have")));
}

TEST(GlobalBatchTest, MicrobatchesOverruleTheMicroBatch) {
  const ModelInput images = {"pixel_values", {{0, {"images"}}, {3, {}}}};
  Recipe recipe = recipeOf({{"batch", 2}, {"images", 4}, {"sequence", 64}});
  recipe.images = {{"*", 2, 49}};
  ORIEL_ASSERT_OK_AND_ASSIGN(
      Recipe global, withGlobalBatch(recipe, {kTokens, images}, withMicrobatches({4, 1, 1}, 2, 4)));
  EXPECT_EQ(global.microBatch, 1);
  EXPECT_THAT(global.bind, ElementsAre(Pair("batch", 4), Pair("images", 8), Pair("sequence", 64)));
  EXPECT_THAT(global.inputs[0].shape, ElementsAre(4, 64));
  // As many samples as the recipe says, but on more ranks.
  ORIEL_ASSERT_OK_AND_ASSIGN(global,
                             withGlobalBatch(recipe, {kTokens}, withMicrobatches({2, 1, 1}, 2, 8)));
  EXPECT_EQ(global.microBatch, 1);
  EXPECT_EQ(global.bind.at("batch"), 2);
}

TEST(GlobalBatchTest, MicrobatchesOfAFixedBatch) {
  const ModelInput fixed = {"input_ids", {{2, {}}, {64, {}}}};
  ORIEL_EXPECT_OK(
      withGlobalBatch(recipeOf({}), {fixed}, withMicrobatches({1, 1, 1}, 2, 8)).status());
  EXPECT_THAT(withGlobalBatch(recipeOf({}), {fixed}, withMicrobatches({1, 1, 1}, 2, 4)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("or choose 8 microbatches")));
}

TEST(GlobalBatchTest, BatchGrowsByTheRanks) {
  ORIEL_ASSERT_OK_AND_ASSIGN(Recipe recipe,
                             withGlobalBatch(recipeOf({{"batch", 2}, {"sequence", 64}}), {kTokens},
                                             strategyOf({4, 1, 1})));
  EXPECT_THAT(recipe.bind, ElementsAre(Pair("batch", 8), Pair("sequence", 64)));
  EXPECT_THAT(recipe.inputs[0].shape, ElementsAre(8, 64));
  EXPECT_EQ(recipe.microBatch, kMicro);
}

TEST(GlobalBatchTest, OneRankChangesNothing) {
  const ModelInput fixed = {"input_ids", {{3, {}}, {64, {}}}};
  ORIEL_ASSERT_OK_AND_ASSIGN(
      Recipe recipe, withGlobalBatch(recipeOf({{"batch", 2}}), {fixed}, strategyOf({1, 1, 1})));
  EXPECT_THAT(recipe.bind, ElementsAre(Pair("batch", 2)));
}

TEST(GlobalBatchTest, OtherDimensionsOfTheSameSizeStay) {
  ORIEL_ASSERT_OK_AND_ASSIGN(
      Recipe recipe,
      withGlobalBatch(recipeOf({{"batch", 2}, {"sequence", 2}}), {kTokens}, strategyOf({4, 1, 1})));
  EXPECT_THAT(recipe.bind, ElementsAre(Pair("batch", 8), Pair("sequence", 2)));
}

TEST(GlobalBatchTest, BatchGrowsWhereverItStands) {
  const ModelInput positions = {"position_ids", {{3, {}}, {0, {"batch"}}}};
  Recipe recipe = recipeOf({{"batch", 2}});
  // Positions lead with three axes, which no microbatch has.
  EXPECT_THAT(withGlobalBatch(recipe, {kTokens, positions}, strategyOf({4, 1, 1})),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'position_ids'")));
  const ModelInput mask = {"mask", {{0, {"batch"}}, {0, {"batch"}}}};
  ORIEL_ASSERT_OK_AND_ASSIGN(recipe,
                             withGlobalBatch(recipe, {kTokens, mask}, strategyOf({4, 1, 1})));
  EXPECT_THAT(recipe.bind, ElementsAre(Pair("batch", 8)));
}

TEST(GlobalBatchTest, ImagesGrowToo) {
  const ModelInput images = {"pixel_values", {{0, {"images"}}, {3, {}}}};
  Recipe recipe = recipeOf({{"batch", 2}, {"images", 4}, {"sequence", 64}});
  recipe.images = {{"*", 2, 49}};
  ORIEL_ASSERT_OK_AND_ASSIGN(Recipe global,
                             withGlobalBatch(recipe, {kTokens, images}, strategyOf({4, 1, 1})));
  EXPECT_THAT(global.bind, ElementsAre(Pair("batch", 8), Pair("images", 16), Pair("sequence", 64)));
  // Without a declaration nobody knows what they are.
  recipe.images.clear();
  ORIEL_ASSERT_OK_AND_ASSIGN(global,
                             withGlobalBatch(recipe, {kTokens, images}, strategyOf({4, 1, 1})));
  EXPECT_EQ(global.bind.at("images"), 4);
}

TEST(GlobalBatchTest, LengthsAreNoImages) {
  // The same symbol is a first dimension here and a second one there.
  const ModelInput positions = {"cache_position", {{0, {"sequence"}}}};
  Recipe recipe = recipeOf({{"batch", 2}, {"sequence", 64}});
  recipe.images = {{"*", 1, 49}};
  ORIEL_ASSERT_OK_AND_ASSIGN(Recipe global,
                             withGlobalBatch(recipe, {kTokens, positions}, strategyOf({4, 1, 1})));
  EXPECT_EQ(global.bind.at("sequence"), 64);
}

TEST(GlobalBatchTest, AFixedBatchIsTheGlobalOne) {
  const ModelInput fixed = {"input_ids", {{8, {}}, {64, {}}}};
  ORIEL_ASSERT_OK_AND_ASSIGN(Recipe recipe,
                             withGlobalBatch(recipeOf({}), {fixed}, strategyOf({4, 1, 1})));
  EXPECT_THAT(recipe.inputs[0].shape, ElementsAre(8, 64));
}

TEST(GlobalBatchTest, AFixedBatchOfAnotherSizeIsRefused) {
  const ModelInput fixed = {"input_ids", {{4, {}}, {64, {}}}};
  EXPECT_THAT(withGlobalBatch(recipeOf({}), {fixed}, strategyOf({4, 1, 1})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("the input 'input_ids' has a first dimension of 4"),
                             HasSubstr("2 samples on 4 data-parallel ranks, together 8"),
                             HasSubstr("dynamic batch, or set batch.micro to 1"))));
  EXPECT_THAT(withGlobalBatch(recipeOf({}), {fixed}, strategyOf({8, 1, 1})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("a number of data-parallel ranks that divides 4")));
}

TEST(GlobalBatchTest, FixedImagesAreOfTheGlobalBatch) {
  const ModelInput fixed = {"pixel_values", {{16, {}}, {3, {}}}};
  Recipe recipe = recipeOf({{"batch", 2}});
  EXPECT_THAT(withGlobalBatch(recipe, {kTokens, fixed}, strategyOf({4, 1, 1})),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'pixel_values'")));
  recipe.images = {{"*", 2, 49}};
  ORIEL_EXPECT_OK(withGlobalBatch(recipe, {kTokens, fixed}, strategyOf({4, 1, 1})).status());
}

TEST(GlobalBatchTest, SizesThatDoNotFitStayForTheImportToRefuse) {
  const ModelInput images = {"pixel_values", {{0, {"images"}}}};
  Recipe recipe = recipeOf({{"batch", 2}, {"images", int64_t{1} << 62}});
  recipe.images = {{"*", 1, 49}};
  ORIEL_ASSERT_OK_AND_ASSIGN(Recipe global,
                             withGlobalBatch(recipe, {kTokens, images}, strategyOf({4, 1, 1})));
  EXPECT_EQ(global.bind.at("images"), int64_t{1} << 62);
}

}  // namespace
}  // namespace oriel::driver
