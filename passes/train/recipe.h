// The recipe: what to train, as the user writes it (recipe.yaml).
#ifndef ORIEL_PASSES_TRAIN_RECIPE_H_
#define ORIEL_PASSES_TRAIN_RECIPE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace oriel {

struct Recipe {
  // Symbolic dimensions of the model, bound to sizes ("micro_batch" resolved).
  std::map<std::string, int64_t> bind;

  // An input of the training step that the model's graph does not have (labels).
  struct Input {
    std::string name;
    std::string dtype;           // int64, int32, float32
    std::vector<int64_t> shape;  // per microbatch
  };
  std::vector<Input> inputs;

  // Declares the image merge per sample: each sample has up to `perSample` images, each
  // `rowsPerImage` feature rows. Several kinds of images are told apart by an input that holds
  // them.
  struct Images {
    std::string input = "*";  // any
    int64_t perSample = 1;
    int64_t rowsPerImage = 0;
  };
  std::vector<Images> images;

  enum class LossKind {
    kTokenCrossEntropy,
    kSum,  // of the output's elements; no labels
  };
  struct Loss {
    LossKind kind = LossKind::kTokenCrossEntropy;
    std::string output;  // of the model; the logits of a cross entropy
    std::string labels;  // one of `inputs`, or an input of the model
    bool shift = true;   // position i predicts the label of position i + 1
    int64_t ignoreIndex = -100;
    bool overMicrobatch = false;  // a sum: the mean of the microbatches' own
  };
  Loss loss;
  // Whether a step has one microbatch only: what is summed up may mix the samples of its batch.
  bool isOneMicrobatch() const { return loss.kind == LossKind::kSum && !loss.overMicrobatch; }
  // The step's input with the labels: one of `inputs`, or, where the labels are an input of the
  // model, another of the step's that is filled with the same data ("input_ids.labels"): labels
  // may be masked where the model's input may not.
  std::string labelsInput() const;

  // Patterns over ONNX initializer names; frozen wins.
  std::vector<std::string> trainable = {"*"};
  std::vector<std::string> frozen;
  bool isTrainable(const std::string& parameter) const;

  // Initial values that the model file does not give.
  struct Distribution {
    enum class Kind { kConstant, kNormal, kUniform };
    Kind kind = Kind::kConstant;
    double first = 0;   // the constant, the mean, or the lowest value
    double second = 0;  // the standard deviation, or the bound above (not reached)
  };
  struct InitRule {
    std::vector<std::string> match;  // patterns
    Distribution distribution;
  };
  struct Init {
    uint64_t seed = 0;  // `seed` if not given
    std::vector<InitRule> rules;
  };
  Init init;
  // What the first matching rule says; null where none does: the file's value.
  const Distribution* initialValueOf(const std::string& parameter) const;

  // Parameters with numbers of their own.
  struct OptimizerGroup {
    std::vector<std::string> match;  // patterns
    std::optional<double> lr;        // the peak
    std::optional<double> weightDecay;
  };
  enum class OptimizerKind { kSgd, kAdamW };
  struct Optimizer {
    OptimizerKind kind = OptimizerKind::kAdamW;
    double lr = 0;
    double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
    double momentum = 0;  // of sgd
    bool nesterov = false;
    double weightDecay = 0;
    std::vector<std::string> noDecay;  // patterns
    double clipNorm = 0;               // 0: no clipping
    std::vector<OptimizerGroup> groups;
  };
  Optimizer optimizer;
  // The first group that matches; null where none does.
  const OptimizerGroup* groupOf(const std::string& parameter) const;
  // The peak of one parameter's learning rate: that of the first group that matches, or `lr`.
  double learningRateOf(const std::string& parameter) const;
  // Weight decay of one parameter: 0 where a `no_decay` pattern matches, else that of the first
  // group that matches, or `weight_decay`.
  double weightDecayOf(const std::string& parameter) const;

  enum class ScheduleKind { kConstant, kLinear, kCosine };
  struct Schedule {
    ScheduleKind kind = ScheduleKind::kConstant;
    int64_t warmupSteps = 0;
    int64_t holdSteps = 0;   // at the peak, behind the warm-up
    int64_t totalSteps = 0;  // `steps` if not given
    double finalRatio = 0;
  };
  Schedule schedule;

  // In which types the step computes; f32 all through unless `mixed`.
  struct Precision {
    bool mixed = false;            // bf16 by the table of ops, f32 where that says so
    bool narrowGradients = false;  // gradients are kept, and added up over microbatches, in bf16
    struct OpRule {
      std::string match;  // pattern over op names ("softmax")
      bool narrow = false;
    };
    std::vector<OpRule> ops;  // one of the very name decides, else the first that matches
    // None where no rule is about the op.
    std::optional<bool> isNarrow(const std::string& op) const;
  };
  Precision precision;

  int64_t globalBatch = 0;
  int64_t microBatch = 0;
  int64_t steps = 0;
  uint64_t seed = 0;

  std::string text;  // as read
};

// Reads and checks a recipe. InvalidArgument names file, line and column, what is wrong, and
// for an unknown key the nearest known one; NotFound for a missing file.
absl::StatusOr<Recipe> readRecipe(const std::string& path);
// The same from text; `name` stands for the file in messages.
absl::StatusOr<Recipe> parseRecipe(const std::string& text, const std::string& name);

}  // namespace oriel

#endif  // ORIEL_PASSES_TRAIN_RECIPE_H_
