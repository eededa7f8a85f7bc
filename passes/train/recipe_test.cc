#include "passes/train/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "passes/config/reader_testing.h"

namespace oriel {
namespace {

using ::testing::HasSubstr;

// A recipe with every key; tests replace parts of it.
const char kFull[] = R"(model:
  bind: {batch: micro_batch, sequence: 64}
inputs:
  labels: {dtype: int64, shape: [micro_batch, sequence]}
images: {per_sample: 2, rows_per_image: 49}
loss:
  kind: token_cross_entropy
  logits: scores
  labels: labels
  shift: false
  ignore_index: -1
parameters:
  trainable: ["*"]
  frozen: ["vision.*", "*.bias"]
optimizer:
  kind: adamw
  lr: 2.0e-3
  betas: [0.8, 0.95]
  eps: 1.0e-6
  weight_decay: 0.05
  no_decay: ["*norm*"]
  clip_norm: 1.0
  groups:
    - {match: ["projector.*"], lr: 4.0e-3}
    - {match: ["projector.up", "*head*"], lr: 1.0e-3, weight_decay: 0.5}
schedule: {kind: cosine, warmup_steps: 10, hold_steps: 20, total_steps: 200, final_ratio: 0.1}
batch: {global: 16, micro: 4}
precision: f32
steps: 100
seed: 7
)";

const char kMinimal[] = R"(inputs: {labels: {dtype: int64, shape: [2, 8]}}
loss: {logits: logits, labels: labels}
optimizer: {kind: sgd, lr: 0.1}
batch: {global: 2, micro: 2}
steps: 5
)";

std::string errorOf(const std::string& text) {
  SCOPED_TRACE(text);
  return refusalOf(parseRecipe(text, "r.yaml"));
}

TEST(Recipe, ReadsEveryKey) {
  absl::StatusOr<Recipe> read = parseRecipe(kFull, "r.yaml");
  ASSERT_TRUE(read.ok()) << read.status();
  const Recipe& recipe = *read;
  EXPECT_EQ(recipe.bind, (std::map<std::string, int64_t>{{"batch", 4}, {"sequence", 64}}));
  ASSERT_EQ(recipe.inputs.size(), 1u);
  EXPECT_EQ(recipe.inputs[0].name, "labels");
  EXPECT_EQ(recipe.inputs[0].dtype, "int64");
  EXPECT_EQ(recipe.inputs[0].shape, (std::vector<int64_t>{4, 64}));
  ASSERT_EQ(recipe.images.size(), 1);
  EXPECT_EQ(recipe.images[0].input, "*");
  EXPECT_EQ(recipe.images[0].perSample, 2);
  EXPECT_EQ(recipe.images[0].rowsPerImage, 49);
  EXPECT_EQ(recipe.loss.output, "scores");
  EXPECT_FALSE(recipe.loss.shift);
  EXPECT_EQ(recipe.loss.ignoreIndex, -1);
  EXPECT_TRUE(recipe.isTrainable("language.w"));
  EXPECT_FALSE(recipe.isTrainable("vision.w"));
  EXPECT_FALSE(recipe.isTrainable("language.bias"));
  EXPECT_EQ(recipe.optimizer.kind, Recipe::OptimizerKind::kAdamW);
  EXPECT_EQ(recipe.optimizer.lr, 2e-3);
  EXPECT_EQ(recipe.optimizer.beta1, 0.8);
  EXPECT_EQ(recipe.optimizer.beta2, 0.95);
  EXPECT_EQ(recipe.optimizer.epsilon, 1e-6);
  EXPECT_EQ(recipe.optimizer.clipNorm, 1.0);
  EXPECT_EQ(recipe.weightDecayOf("layer.w"), 0.05);
  EXPECT_EQ(recipe.weightDecayOf("layer.norm.w"), 0);
  EXPECT_EQ(recipe.learningRateOf("layer.w"), 2e-3);
  EXPECT_EQ(recipe.schedule.kind, Recipe::ScheduleKind::kCosine);
  EXPECT_EQ(recipe.schedule.warmupSteps, 10);
  EXPECT_EQ(recipe.schedule.holdSteps, 20);
  EXPECT_EQ(recipe.schedule.totalSteps, 200);
  EXPECT_EQ(recipe.schedule.finalRatio, 0.1);
  EXPECT_EQ(recipe.globalBatch, 16);
  EXPECT_EQ(recipe.microBatch, 4);
  EXPECT_EQ(recipe.steps, 100);
  EXPECT_EQ(recipe.seed, 7u);
  EXPECT_EQ(recipe.text, kFull);
}

TEST(Recipe, DefaultsOfWhatIsNotSaid) {
  absl::StatusOr<Recipe> recipe = parseRecipe(kMinimal, "r.yaml");
  ASSERT_TRUE(recipe.ok()) << recipe.status();
  EXPECT_TRUE(recipe->bind.empty());
  EXPECT_TRUE(recipe->images.empty());
  EXPECT_TRUE(recipe->loss.shift);
  EXPECT_EQ(recipe->loss.ignoreIndex, -100);
  EXPECT_TRUE(recipe->isTrainable("anything"));
  EXPECT_EQ(recipe->optimizer.kind, Recipe::OptimizerKind::kSgd);
  EXPECT_EQ(recipe->optimizer.clipNorm, 0);
  EXPECT_EQ(recipe->schedule.kind, Recipe::ScheduleKind::kConstant);
  EXPECT_EQ(recipe->schedule.totalSteps, 5) << "the schedule ends with the training";
}

TEST(Recipe, UnknownKeyNamesPlaceAndNearestKey) {
  EXPECT_EQ(errorOf(replaced(kFull, "  logits: scores", "  logit: scores")),
            "r.yaml:8:3: unknown key 'logit' in 'loss'; did you mean 'logits'?");
  EXPECT_EQ(errorOf(replaced(kFull, "steps: 100", "step: 100")),
            "r.yaml:29:1: unknown key 'step'; did you mean 'steps'?");
  EXPECT_THAT(errorOf(replaced(kFull, "dtype: int64", "type: int64")),
              HasSubstr("unknown key 'type' in 'inputs.labels'; did you mean 'dtype'?"));
}

TEST(Recipe, KeyTwiceNamesBothPlaces) {
  EXPECT_EQ(errorOf(std::string(kMinimal) + "steps: 6\n"),
            "r.yaml:6:1: key 'steps' appears twice (first on line 5)");
}

TEST(Recipe, MissingKey) {
  EXPECT_THAT(errorOf(replaced(kMinimal, "steps: 5\n", "")), HasSubstr("missing key 'steps'"));
  EXPECT_THAT(errorOf(replaced(kMinimal, ", lr: 0.1", "")),
              HasSubstr("r.yaml:3:12: missing key 'optimizer.lr'"));
  EXPECT_THAT(errorOf(replaced(kMinimal, "logits: logits, ", "")),
              HasSubstr("missing key 'loss.logits'"));
  EXPECT_THAT(errorOf(replaced(kMinimal, ", micro: 2", "")),
              HasSubstr("missing key 'batch.micro'"));
}

TEST(Recipe, UnknownWordNamesNearest) {
  EXPECT_THAT(errorOf(replaced(kFull, "kind: adamw", "kind: adam")),
              HasSubstr("'optimizer.kind' can't be 'adam'; did you mean 'adamw'?"));
  EXPECT_THAT(errorOf(replaced(kFull, "kind: cosine", "kind: cosin")),
              HasSubstr("did you mean 'cosine'?"));
  EXPECT_THAT(errorOf(replaced(kFull, "precision: f32", "precision: fp16")),
              HasSubstr("'precision' can't be 'fp16'"));
  EXPECT_THAT(errorOf(replaced(kFull, "kind: token_cross_entropy", "kind: mse")),
              HasSubstr("'loss.kind' can't be 'mse'"));
}

TEST(Recipe, PrecisionIsAWordOrAMapping) {
  auto precisionOf = [](const std::string& value) {
    absl::StatusOr<Recipe> recipe =
        parseRecipe(replaced(kFull, "precision: f32", "precision: " + value), "r.yaml");
    EXPECT_TRUE(recipe.ok()) << recipe.status();
    return recipe.ok() ? recipe->precision : Recipe::Precision();
  };
  EXPECT_FALSE(precisionOf("f32").mixed);
  EXPECT_TRUE(precisionOf("bf16").mixed);
  EXPECT_FALSE(precisionOf("bf16").narrowGradients);
  EXPECT_FALSE(precisionOf("{compute: f32}").mixed);
  Recipe::Precision precision =
      precisionOf("{compute: bf16, gradients: bf16, ops: {\"*norm\": f32, softmax: bf16}}");
  EXPECT_TRUE(precision.mixed);
  EXPECT_TRUE(precision.narrowGradients);
  EXPECT_EQ(precision.isNarrow("rms_norm"), std::optional<bool>(false));
  EXPECT_EQ(precision.isNarrow("softmax"), std::optional<bool>(true));
  EXPECT_EQ(precision.isNarrow("linear"), std::nullopt);
  // A name before patterns, and those in their order; with the dialect or without.
  precision = precisionOf("{compute: bf16, ops: {\"*\": bf16, \"soft*\": f32, oriel.linear: f32}}");
  EXPECT_EQ(precision.isNarrow("linear"), std::optional<bool>(false));
  EXPECT_EQ(precision.isNarrow("softmax"), std::optional<bool>(true));
}

TEST(Recipe, PrecisionErrors) {
  auto error = [](const std::string& value) {
    return errorOf(replaced(kFull, "precision: f32", "precision: " + value));
  };
  EXPECT_THAT(error("{gradients: f32}"), HasSubstr("missing key 'precision.compute'"));
  for (const char* value : {"[bf16]", "null", "~", "\"\""}) {
    EXPECT_THAT(error(value), HasSubstr("'precision' must be f32, bf16, or a mapping"));
  }
  EXPECT_THAT(error("{compute: bf16, ops: {linear: f32, oriel.linear: bf16}}"),
              HasSubstr("'precision.ops' has 'linear' twice"));
  EXPECT_THAT(error("{compute: bf61}"),
              HasSubstr("'precision.compute' can't be 'bf61'; did you mean 'bf16'?"));
  EXPECT_THAT(error("{compute: bf16, op: {}}"),
              HasSubstr("unknown key 'op' in 'precision'; did you mean 'ops'?"));
  EXPECT_THAT(error("{compute: f32, gradients: bf16}"),
              HasSubstr("'precision.gradients' is not used where 'precision.compute' is f32"));
  EXPECT_THAT(error("{compute: f32, ops: {softmax: f32}}"), HasSubstr("'precision.ops'"));
  EXPECT_THAT(error("{compute: bf16, ops: {softmax: f64}}"),
              HasSubstr("'precision.ops.softmax' can't be 'f64'"));
  EXPECT_THAT(error("{compute: bf16, ops: [softmax]}"),
              HasSubstr("'precision.ops' must be a mapping"));
}

TEST(Recipe, ValuesOfAnotherType) {
  EXPECT_EQ(errorOf(replaced(kMinimal, "steps: 5", "steps: 5.5")),
            "r.yaml:5:8: 'steps' must be a whole number");
  EXPECT_THAT(errorOf(replaced(kMinimal, "lr: 0.1", "lr: fast")),
              HasSubstr("'optimizer.lr' must be a finite number"));
  EXPECT_THAT(errorOf(replaced(kMinimal, "lr: 0.1", "lr: .nan")), HasSubstr("finite"));
  EXPECT_THAT(errorOf(replaced(kFull, "shift: false", "shift: maybe")),
              HasSubstr("'loss.shift' must be true or false"));
  EXPECT_THAT(errorOf(replaced(kFull, "[\"vision.*\", \"*.bias\"]", "{a: b}")),
              HasSubstr("'parameters.frozen' must be a list of words"));
  EXPECT_THAT(errorOf(replaced(kMinimal, "{global: 2, micro: 2}", "2")),
              HasSubstr("'batch' must be a mapping"));
  EXPECT_THAT(errorOf(replaced(kMinimal, "[2, 8]", "[2, 0]")), HasSubstr("numbers above 0"));
  EXPECT_THAT(errorOf(replaced(kMinimal, "[2, 8]", "[2, past]") + "model: {bind: {past: 0}}\n"),
              HasSubstr("can't be 'past', which 'model.bind' makes 0"));
  EXPECT_THAT(errorOf(kMinimal + std::string("\nmodel: {bind: {past: -1}}\n")),
              HasSubstr("'model.bind.past' must hold whole numbers or names of sizes"));
  EXPECT_THAT(errorOf(replaced(kMinimal, "[2, 8]", "[2, x]")),
              HasSubstr("'inputs.labels.shape' must hold whole numbers above 0 or names of sizes; "
                        "can't use 'x'"));
}

TEST(Recipe, ValuesOutOfRange) {
  EXPECT_THAT(errorOf(replaced(kMinimal, "steps: 5", "steps: 0")), HasSubstr("at least 1"));
  EXPECT_THAT(errorOf(replaced(kMinimal, "lr: 0.1", "lr: -1")), HasSubstr("must be above 0"));
  EXPECT_THAT(errorOf(replaced(kFull, "[0.8, 0.95]", "[0.8, 1.0]")),
              HasSubstr("'optimizer.betas'"));
  EXPECT_THAT(errorOf(replaced(kFull, "[0.8, 0.95]", "[0.8]")), HasSubstr("two numbers"));
  EXPECT_THAT(errorOf(replaced(kFull, "eps: 1.0e-6", "eps: 0")), HasSubstr("'optimizer.eps'"));
  EXPECT_THAT(errorOf(replaced(kFull, "weight_decay: 0.05", "weight_decay: -1")),
              HasSubstr("'optimizer.weight_decay'"));
  EXPECT_THAT(errorOf(replaced(kFull, "clip_norm: 1.0", "clip_norm: -1")),
              HasSubstr("'optimizer.clip_norm'"));
  EXPECT_THAT(errorOf(replaced(kFull, "final_ratio: 0.1", "final_ratio: 2")),
              HasSubstr("'schedule.final_ratio'"));
  EXPECT_THAT(errorOf(replaced(kFull, "warmup_steps: 10", "warmup_steps: 201")),
              HasSubstr("'schedule.warmup_steps' must not be above"));
  EXPECT_THAT(errorOf(replaced(kFull, "hold_steps: 20", "hold_steps: 191")),
              HasSubstr("'schedule.hold_steps' and 'schedule.warmup_steps' must not be above"));
  EXPECT_THAT(errorOf(replaced(kFull, "kind: cosine", "kind: constant")),
              HasSubstr("'schedule.hold_steps' is not used by constant"));
  EXPECT_THAT(errorOf(replaced(kFull, "kind: cosine, warmup_steps: 10, hold_steps: 20, ", "")),
              HasSubstr("'schedule.total_steps' is not used by constant, the default of"));
  EXPECT_THAT(errorOf(replaced(kFull, "rows_per_image: 49", "rows_per_image: 0")),
              HasSubstr("'images.rows_per_image' must be 1 to 1073741824, not 0"));
  const std::string sound = "{input: sound, rows_per_image: 8}";
  const std::string images = "images: {per_sample: 2, rows_per_image: 49}";
  EXPECT_THAT(errorOf(replaced(kFull, images, "images: [" + sound + ", {rows_per_image: 49}]")),
              HasSubstr("missing key 'images[1].input'"));
  EXPECT_THAT(
      errorOf(replaced(kFull, images, "images: [" + sound + ", {input: '*', rows_per_image: 49}]")),
      HasSubstr("'images[1].input' must be the name of an input"));
  EXPECT_THAT(errorOf(replaced(kFull, images, "images: [" + sound + ", " + sound + "]")),
              HasSubstr("'images' names the input 'sound' twice"));
  EXPECT_THAT(errorOf(replaced(kFull, images, "images: []")),
              HasSubstr("'images' is an empty list; leave it out"));
  // Products of these are taken later.
  EXPECT_THAT(errorOf(replaced(kFull, "per_sample: 2", "per_sample: 4611686018427387904")),
              HasSubstr("'images.per_sample' must be 1 to 1073741824"));
  EXPECT_THAT(errorOf(replaced(kFull, "global: 16, micro: 4",
                               "global: 4611686018427387904, micro: 4611686018427387904")),
              HasSubstr("'batch.global' must be 1 to 1099511627776"));
  EXPECT_THAT(errorOf(replaced(kFull, "global: 16", "global: 15")),
              HasSubstr("'batch.global' (15) must be a multiple of 'batch.micro' (4)"));
}

TEST(Recipe, FirstOptimizerGroupThatMatchesDecides) {
  const auto recipe = parseRecipe(kFull, "r.yaml");
  ASSERT_TRUE(recipe.ok()) << recipe.status();
  EXPECT_EQ(recipe->learningRateOf("projector.up"), 4e-3);
  EXPECT_EQ(recipe->weightDecayOf("projector.up"), 0.05);  // the group leaves it
  EXPECT_EQ(recipe->learningRateOf("lm_head"), 1e-3);
  EXPECT_EQ(recipe->weightDecayOf("lm_head"), 0.5);
  EXPECT_EQ(recipe->weightDecayOf("head.norm"), 0);  // no_decay wins
}

TEST(Recipe, BadOptimizerGroups) {
  const auto errorWith = [](const std::string& group) {
    return errorOf(replaced(kFull, "{match: [\"projector.*\"], lr: 4.0e-3}", group));
  };
  EXPECT_THAT(errorWith("{lr: 1.0}"), HasSubstr("missing key 'optimizer.groups[0].match'"));
  EXPECT_THAT(errorWith("{match: [], lr: 1.0}"),
              HasSubstr("'optimizer.groups[0].match' must hold a pattern"));
  EXPECT_THAT(errorWith("{match: [\"*\"], lr: 0}"),
              HasSubstr("'optimizer.groups[0].lr' must be above 0"));
  EXPECT_THAT(errorWith("{match: [\"*\"], lr: 1.0e+38}"),
              HasSubstr("'optimizer.groups[0].lr' over 'optimizer.lr' is beyond f32"));
  EXPECT_THAT(errorWith("{match: [\"*\"], lr: 1.0e-50}"),
              HasSubstr("'optimizer.groups[0].lr' is 0 in f32"));
  EXPECT_THAT(errorWith("{match: [\"*\"], weight_decay: -1}"),
              HasSubstr("'optimizer.groups[0].weight_decay' must not be below 0"));
  EXPECT_THAT(errorWith("{match: [\"*\"]}"),
              HasSubstr("'optimizer.groups[0]' must have 'lr', 'weight_decay', or both"));
  EXPECT_THAT(errorWith("{match: [\"*\"], rate: 1}"), HasSubstr("unknown key 'rate'"));
  EXPECT_THAT(errorOf(replaced(kMinimal, "lr: 0.1", "lr: 0.1, groups: {lr: 1}")),
              HasSubstr("'optimizer.groups' must be a list of groups"));
}

const char kInit[] = R"(init:
  rules:
    - {match: ["*norm*.weight"], constant: 1.0}
    - {match: "*.bias", uniform: {low: -0.1, high: 0.1}}
    - {match: ["*"], normal: {mean: 0.5, std: 0.02}}
)";

TEST(Recipe, FirstInitRuleThatMatchesDecides) {
  using Kind = Recipe::Distribution::Kind;
  absl::StatusOr<Recipe> recipe = parseRecipe(kMinimal + std::string(kInit) + "seed: 3\n", "r");
  ASSERT_TRUE(recipe.ok()) << recipe.status();
  EXPECT_EQ(recipe->init.seed, 3u);
  const Recipe::Distribution* norm = recipe->initialValueOf("norm.weight");
  ASSERT_NE(norm, nullptr);
  EXPECT_EQ(norm->kind, Kind::kConstant);
  EXPECT_EQ(norm->first, 1);
  EXPECT_EQ(recipe->initialValueOf("norm.bias")->kind, Kind::kUniform);
  EXPECT_EQ(recipe->initialValueOf("norm.bias")->first, -0.1);
  EXPECT_EQ(recipe->initialValueOf("norm.bias")->second, 0.1);
  EXPECT_EQ(recipe->initialValueOf("w")->kind, Kind::kNormal);
  EXPECT_EQ(recipe->initialValueOf("w")->first, 0.5);
  EXPECT_EQ(recipe->initialValueOf("w")->second, 0.02);
}

TEST(Recipe, NormalInitHasMeanZeroUnlessGiven) {
  const char rules[] = "init: {rules: [{match: [a], normal: {std: 1}}]}\n";
  absl::StatusOr<Recipe> recipe = parseRecipe(kMinimal + std::string(rules), "r");
  ASSERT_TRUE(recipe.ok()) << recipe.status();
  EXPECT_EQ(recipe->initialValueOf("a")->first, 0);
}

TEST(Recipe, ParameterWithoutInitRuleKeepsTheFilesValue) {
  const char rules[] = "init: {seed: 9, rules: [{match: [a, b], constant: 0}]}\n";
  absl::StatusOr<Recipe> recipe = parseRecipe(kMinimal + std::string(rules), "r");
  ASSERT_TRUE(recipe.ok()) << recipe.status();
  EXPECT_EQ(recipe->init.seed, 9u);
  EXPECT_NE(recipe->initialValueOf("b"), nullptr);
  EXPECT_EQ(recipe->initialValueOf("c"), nullptr);
  EXPECT_EQ(parseRecipe(kMinimal, "r")->initialValueOf("a"), nullptr);
}

TEST(Recipe, InitErrorsNameTheRule) {
  auto errorWith = [](const std::string& from, const std::string& to) {
    return errorOf(replaced(kMinimal + std::string(kInit), from, to));
  };
  EXPECT_THAT(errorWith(", constant: 1.0", ""),
              HasSubstr("'init.rules[0]' must have one of 'constant', 'normal' and 'uniform', not "
                        "none"));
  EXPECT_THAT(errorWith("constant: 1.0", "constant: 1.0, normal: {mean: 0, std: 1}"),
              HasSubstr("'init.rules[0]' must have one of 'constant', 'normal' and 'uniform', not "
                        "several"));
  EXPECT_THAT(errorWith("match: [\"*\"], ", ""), HasSubstr("missing key 'init.rules[2].match'"));
  EXPECT_THAT(errorWith("match: [\"*\"]", "match: []"),
              HasSubstr("'init.rules[2].match' must hold a pattern"));
  EXPECT_THAT(errorWith(", std: 0.02", ""), HasSubstr("missing key 'init.rules[2].normal.std'"));
  EXPECT_THAT(errorWith("std: 0.02", "std: -1"),
              HasSubstr("'init.rules[2].normal.std' must not be below 0"));
  EXPECT_THAT(errorWith("std: 0.02", "sdt: 1"), HasSubstr("did you mean 'std'?"));
  EXPECT_THAT(errorWith("high: 0.1", "high: -0.1"),
              HasSubstr("'init.rules[1].uniform.high' must be above 'init.rules[1].uniform.low'"));
  EXPECT_THAT(errorWith("constant: 1.0", "constant: 1e300"),
              HasSubstr("'init.rules[0].constant' is too large for f32"));
  EXPECT_THAT(errorOf(kMinimal + std::string("init: {rules: []}\n")),
              HasSubstr("'init.rules' holds no rule"));
  EXPECT_THAT(errorOf(kMinimal + std::string("init: {rules: 1}\n")),
              HasSubstr("'init.rules' must be a list of rules"));
  EXPECT_THAT(errorOf(kMinimal + std::string("init: {seed: 1}\n")),
              HasSubstr("missing key 'init.rules'"));
}

TEST(Recipe, SgdRefusesKeysOfAdamw) {
  EXPECT_THAT(errorOf(replaced(kMinimal, "lr: 0.1", "lr: 0.1, betas: [0.9, 0.9]")),
              HasSubstr("'optimizer.betas' is not used by sgd"));
}

TEST(Recipe, MomentumIsOfSgd) {
  const absl::StatusOr<Recipe> recipe =
      parseRecipe(replaced(kMinimal, "lr: 0.1", "lr: 0.1, momentum: 0.9, nesterov: true"), "r");
  ASSERT_TRUE(recipe.ok()) << recipe.status();
  EXPECT_EQ(recipe->optimizer.momentum, 0.9);
  EXPECT_TRUE(recipe->optimizer.nesterov);
  auto errorWith = [](const char* optimizer) {
    return errorOf(replaced(kMinimal, "kind: sgd, lr: 0.1", optimizer));
  };
  EXPECT_THAT(errorWith("kind: adamw, lr: 0.1, momentum: 0.9"),
              HasSubstr("'optimizer.momentum' is of sgd only"));
  EXPECT_THAT(errorWith("kind: sgd, lr: 0.1, momentum: 1"),
              HasSubstr("'optimizer.momentum' must be below 1"));
  EXPECT_THAT(errorWith("kind: sgd, lr: 0.1, momentum: -0.1"),
              HasSubstr("'optimizer.momentum' must not be below 0"));
  EXPECT_THAT(errorWith("kind: sgd, lr: 0.1, nesterov: true"),
              HasSubstr("'optimizer.nesterov' needs a 'momentum' above 0"));
}

TEST(Recipe, LabelsThatAreNoInputOfTheRecipeAreTheModels) {
  absl::StatusOr<Recipe> recipe = parseRecipe(kMinimal, "r");
  EXPECT_EQ(recipe->labelsInput(), "labels");
  recipe = parseRecipe(replaced(kMinimal, "labels: labels", "labels: input_ids"), "r");
  ASSERT_TRUE(recipe.ok()) << recipe.status();
  EXPECT_EQ(recipe->labelsInput(), "input_ids.labels");
}

const char kMinimalLoss[] = "loss: {logits: logits, labels: labels}";

TEST(Recipe, SumOfAnOutput) {
  absl::StatusOr<Recipe> recipe =
      parseRecipe(replaced(kMinimal, kMinimalLoss, "loss: {kind: sum, output: scores}"), "r");
  ASSERT_TRUE(recipe.ok()) << recipe.status();
  EXPECT_EQ(recipe->loss.kind, Recipe::LossKind::kSum);
  EXPECT_EQ(recipe->loss.output, "scores");
  EXPECT_EQ(recipe->labelsInput(), "");
  EXPECT_TRUE(recipe->isOneMicrobatch());
}

TEST(Recipe, SumOverEachMicrobatch) {
  absl::StatusOr<Recipe> recipe = parseRecipe(
      replaced(kMinimal, kMinimalLoss, "loss: {kind: sum, output: scores, over: microbatch}"), "r");
  ASSERT_TRUE(recipe.ok()) << recipe.status();
  EXPECT_FALSE(recipe->isOneMicrobatch());
}

TEST(Recipe, KeysOfAnotherLoss) {
  auto errorWith = [](const std::string& loss) {
    return errorOf(replaced(kMinimal, kMinimalLoss, "loss: {" + loss + "}"));
  };
  EXPECT_THAT(errorWith("kind: sum, output: y, shift: true"),
              HasSubstr("'loss.shift' is not used by sum"));
  EXPECT_THAT(errorWith("kind: sum, output: y, labels: labels"),
              HasSubstr("'loss.labels' is not used by sum"));
  EXPECT_THAT(errorWith("kind: sum"), HasSubstr("missing key 'loss.output'"));
  EXPECT_THAT(errorWith("logits: y, labels: labels, output: y"),
              HasSubstr("'loss.output' is not used by token_cross_entropy"));
  EXPECT_THAT(errorWith("logits: y, labels: labels, over: microbatch"),
              HasSubstr("'loss.over' is not used by token_cross_entropy"));
  EXPECT_THAT(errorWith("kind: sum, output: y, over: rank"),
              HasSubstr("'loss.over' can't be 'rank'"));
}

TEST(Recipe, LabelsMustBeAnIntegerInput) {
  EXPECT_THAT(errorOf(replaced(kMinimal, "int64", "float32")),
              HasSubstr("must be int64 or int32, not float32"));
}

TEST(Recipe, SyntaxErrorNamesPlace) {
  EXPECT_THAT(errorOf("loss: {logits: x\nsteps: 1\n"), HasSubstr("r.yaml:2:"));
}

TEST(Recipe, NestedTooDeeply) {
  for (const std::string open : {"[", "{a: ", "- "}) {
    std::string text = "inputs:\n  ";
    for (int i = 0; i < 100000; ++i) text += open;
    EXPECT_THAT(errorOf(text), HasSubstr("nested too deeply"));
  }
}

TEST(Recipe, AliasesOfAliases) {
  // Each list holds the one before nine times: 9^40 words, were they written out.
  std::string text = "frozen0: &a0 [x]\n";
  for (int i = 1; i < 40; ++i) {
    std::string below = "*a" + std::to_string(i - 1);
    text += "frozen" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + below;
    for (int j = 1; j < 9; ++j) text += ", " + below;
    text += "]\n";
  }
  EXPECT_THAT(errorOf(text + kMinimal), HasSubstr("unknown key 'frozen0'"));
  EXPECT_THAT(errorOf("&r {loss: *r, optimizer: *r, batch: *r, steps: 1}"),
              HasSubstr("unknown key"));
}

// yaml-cpp reads one document, and says nothing of others.
TEST(Recipe, SecondDocument) {
  const std::string minimal = kMinimal;
  EXPECT_EQ(errorOf(minimal + "---\nsteps: 5\n"),
            "r.yaml:7:1: a second document ('---') begins here; remove it");
  EXPECT_THAT(errorOf("---\n" + minimal + "--- word\n"), HasSubstr("a second document"));
  for (const char* end : {"---\n", "...\n", "---\n# nothing\n"}) {
    EXPECT_TRUE(parseRecipe(minimal + end, "r.yaml").ok()) << end;
  }
}

TEST(Recipe, NumbersThatAreNoneInF32) {
  const auto with = [](const std::string& optimizer) {
    return replaced(kMinimal, "kind: sgd, lr: 0.1", optimizer);
  };
  for (const char* optimizer :
       {"kind: adamw, lr: 0.1, eps: 1e-60", "kind: sgd, lr: 1e300",
        "kind: sgd, lr: 0.1, weight_decay: 1e300", "kind: sgd, lr: 0.1, clip_norm: 1e-50"}) {
    EXPECT_THAT(errorOf(with(optimizer)), HasSubstr("in f32, in which it is used")) << optimizer;
  }
  EXPECT_THAT(errorOf(with("kind: adamw, lr: 0.1, betas: [0.9, 0.999999999999]")),
              HasSubstr("below 1 in f32"));
}

TEST(Recipe, TextThatIsNotUtf8) {
  for (const char* bytes : {"\xff\xfe", "\xe9", "\xc3", "\xc0\x80", "\xed\xa0\x80",
                            "\xf5\x80\x80\x80", "\xe0\x80\x80", "\xf0\x80\x80\x80"}) {
    EXPECT_EQ(errorOf(std::string("# ") + bytes + "\n" + kMinimal),
              "r.yaml: is not UTF-8 text, as a YAML file is");
  }
  EXPECT_THAT(errorOf(std::string("# \0\n", 4) + kMinimal), HasSubstr("has a byte of 0"));
  EXPECT_TRUE(parseRecipe(std::string("# \u00e9 \u20ac \U0001f600\n") + kMinimal, "r.yaml").ok());
}

TEST(Recipe, IndentedByTabs) {
  EXPECT_THAT(errorOf("loss:\n\tkind: sum\n"), HasSubstr("with spaces, not with tabs"));
  EXPECT_THAT(errorOf("loss: {kind: sum\nbatch: 1\n"), Not(HasSubstr("tabs")));
}

TEST(Recipe, OctalNumbers) {
  EXPECT_THAT(
      errorOf(replaced(kMinimal, "steps: 5", "steps: 010")),
      AllOf(HasSubstr("'steps' begins with a 0"), HasSubstr("octal"), HasSubstr("write 8")));
  EXPECT_TRUE(parseRecipe(std::string(kMinimal) + "seed: 0\n", "r.yaml").ok());
}

TEST(Recipe, NotAMapping) {
  EXPECT_THAT(errorOf(""), HasSubstr("a recipe must be a mapping"));
  EXPECT_THAT(errorOf("- a\n- b\n"), HasSubstr("r.yaml:1:1: a recipe must be a mapping"));
}

TEST(Recipe, ReadsAFileAndNamesOneThatIsMissing) {
  std::string path = ::testing::TempDir() + "/recipe_test.yaml";
  std::ofstream(path) << kMinimal;
  absl::StatusOr<Recipe> recipe = readRecipe(path);
  ASSERT_TRUE(recipe.ok()) << recipe.status();
  EXPECT_EQ(recipe->text, kMinimal);
  std::remove(path.c_str());
  recipe = readRecipe(path);
  EXPECT_EQ(recipe.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(recipe.status().message()), HasSubstr(path));
}

}  // namespace
}  // namespace oriel
