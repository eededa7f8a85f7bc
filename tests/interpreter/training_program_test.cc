// The training program by value: forward, backward and update run through the interpreter.
#include "passes/train/training_program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "ir/oriel/oriel.h"
#include "ir/oriel/segment.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "opcheck/interpreter.h"
#include "passes/train/recipe.h"

namespace oriel {
namespace {

using ir::ValueRole;
using mlir::func::FuncOp;

// logits = x w + b for two samples of three positions and four classes.
const char kModel[] = R"mlir(
module {
  oriel.parameter @w {onnx_name = "w", type = tensor<5x4xf32>}
  oriel.parameter @b {onnx_name = "b", type = tensor<4xf32>}
  func.func @main(%x: tensor<2x3x5xf32> {oriel.kind = "input", oriel.ref = "x"},
      %w: tensor<5x4xf32> {oriel.kind = "parameter", oriel.ref = "w"},
      %b: tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "b"})
      -> (tensor<2x3x4xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %0 = oriel.linear %x, %w, %b : (tensor<2x3x5xf32>, tensor<5x4xf32>, tensor<4xf32>) -> tensor<2x3x4xf32>
    return %0 : tensor<2x3x4xf32>
  }
}
)mlir";

// Keeps the value of every role, as the arena of a rank does.
class TrainingProgramTest : public ::testing::Test {
 protected:
  void Build(const std::string& optimizer, const std::string& loss = "") {
    context_.loadDialect<ir::OrielDialect, mlir::func::FuncDialect>();
    auto recipe = parseRecipe(
        "inputs: {labels: {dtype: int64, shape: [2, 3]}}\n"
        "loss: {logits: logits, labels: labels" +
            loss +
            "}\n"
            "optimizer: " +
            optimizer +
            "\n"
            "batch: {global: 2, micro: 2}\n"
            "steps: 1\n",
        "test");
    ASSERT_TRUE(recipe.ok()) << recipe.status();
    module_ = mlir::parseSourceString<mlir::ModuleOp>(kModel, &context_);
    ASSERT_TRUE(module_);
    ASSERT_TRUE(succeeded(buildTrainingProgram(*module_, *recipe)));
    ASSERT_TRUE(succeeded(mlir::verify(*module_)));
    Set("input x", Ramp(30, 0.05));
    Set("input labels", {2, 0, 3, 1, 1, 2});
    Set("parameter w", Ramp(20, 0.1));
    Set("parameter b", {0.1, -0.2, 0.3, 0});
    Set("scalar learning_rate", {0.1});
    Set("scalar step", {1});
  }

  // Different, sign-changing numbers.
  static std::vector<double> Ramp(int count, double scale) {
    std::vector<double> values;
    for (int i = 0; i < count; ++i) values.push_back(scale * ((i * 7) % 11 - 5));
    return values;
  }

  static std::string Key(const ValueRole& role) {
    return ir::stringifyValueKind(role.kind).str() + " " + role.ref +
           (role.slot.empty() ? "" : " " + role.slot);
  }

  void Set(const std::string& key, std::vector<double> values) { values_[key] = std::move(values); }
  const std::vector<double>& Get(const std::string& key) { return values_[key]; }

  // Runs a segment on the values; what has none yet is zero. Results become values.
  void Run(const std::string& name) {
    auto segment = module_->lookupSymbol<FuncOp>(name);
    ASSERT_TRUE(segment);
    std::vector<HostTensor> arguments;
    std::vector<const HostTensor*> pointers;
    for (unsigned i = 0; i < segment.getNumArguments(); ++i) {
      auto spec = specOf(segment.getArgumentTypes()[i]);
      std::vector<double>& values = values_[Key(*ir::argumentRole(segment, i))];
      values.resize(spec->num_elements());
      arguments.emplace_back(*spec, values);
    }
    for (const HostTensor& argument : arguments) pointers.push_back(&argument);
    auto interpreter = Interpreter::create(segment);
    ASSERT_TRUE(interpreter.ok()) << interpreter.status();
    auto results = interpreter->run(pointers);
    ASSERT_TRUE(results.ok()) << results.status();
    for (unsigned i = 0; i < segment.getNumResults(); ++i) {
      std::vector<double>& values = values_[Key(*ir::resultRole(segment, i))];
      values.clear();
      for (int64_t k = 0; k < (*results)[i].spec().num_elements(); ++k) {
        values.push_back((*results)[i].get(k));
      }
    }
  }

  double MeanLoss() {
    Run("eval");
    return Get("output loss_sum")[0] / Get("output token_count")[0];
  }

  static double Norm(const std::vector<std::vector<double>>& parts) {
    double sum = 0;
    for (const auto& part : parts) {
      for (double x : part) sum += x * x;
    }
    return std::sqrt(sum);
  }

  mlir::MLIRContext context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  std::map<std::string, std::vector<double>> values_;
};

TEST_F(TrainingProgramTest, GradientsAreThoseOfTheSummedLoss) {
  Build("{kind: sgd, lr: 0.1}");
  Run("forward");
  Run("backward");
  std::vector<double> gradient = Get("gradient w");
  double count = Get("accumulator token_count")[0];
  EXPECT_EQ(count, 4) << "the shift leaves two of three positions per sample";
  for (size_t i = 0; i < gradient.size(); ++i) {
    double h = 1e-2;
    values_["parameter w"][i] += h;
    double up = MeanLoss();
    values_["parameter w"][i] -= 2 * h;
    double down = MeanLoss();
    values_["parameter w"][i] += h;
    EXPECT_NEAR(gradient[i], count * (up - down) / (2 * h), 1e-3) << i;
  }
}

TEST_F(TrainingProgramTest, MicrobatchesAccumulate) {
  Build("{kind: sgd, lr: 0.1}");
  Run("forward");
  Run("backward");
  std::vector<double> once = Get("gradient w");
  double loss = Get("accumulator loss_sum")[0];
  Run("forward");
  Run("backward");
  for (size_t i = 0; i < once.size(); ++i) EXPECT_NEAR(Get("gradient w")[i], 2 * once[i], 1e-6);
  EXPECT_NEAR(Get("accumulator loss_sum")[0], 2 * loss, 1e-6);
  EXPECT_EQ(Get("accumulator token_count")[0], 8);
}

TEST_F(TrainingProgramTest, SgdStepsByTheGradientOfTheMeanLoss) {
  Build("{kind: sgd, lr: 0.1, weight_decay: 0.5, no_decay: [b]}");
  double mean = MeanLoss();
  Run("forward");
  Run("backward");
  std::vector<double> w = Get("parameter w"), b = Get("parameter b");
  std::vector<double> gw = Get("gradient w"), gb = Get("gradient b");
  for (double& g : gw) g /= 4;
  for (double& g : gb) g /= 4;
  Run("update");
  for (size_t i = 0; i < w.size(); ++i) {
    EXPECT_NEAR(Get("parameter w")[i], w[i] - 0.1 * (gw[i] + 0.5 * w[i]), 1e-6);
  }
  for (size_t i = 0; i < b.size(); ++i)
    EXPECT_NEAR(Get("parameter b")[i], b[i] - 0.1 * gb[i], 1e-6);
  EXPECT_NEAR(Get("output loss")[0], mean, 1e-6);
  EXPECT_NEAR(Get("output grad_norm")[0], Norm({gw, gb}), 1e-6);
  EXPECT_EQ(Get("output token_count")[0], 4);
}

// The step's rate, 0.1, is a fifth of the peak; so is the group's.
TEST_F(TrainingProgramTest, GroupsHaveRatesOfTheirOwn) {
  Build("{kind: sgd, lr: 0.5, groups: [{match: [b], lr: 1.5, weight_decay: 0.25}]}");
  Run("forward");
  Run("backward");
  std::vector<double> w = Get("parameter w"), b = Get("parameter b");
  std::vector<double> gw = Get("gradient w"), gb = Get("gradient b");
  Run("update");
  for (size_t i = 0; i < w.size(); ++i) {
    EXPECT_NEAR(Get("parameter w")[i], w[i] - 0.1 * gw[i] / 4, 1e-6);
  }
  for (size_t i = 0; i < b.size(); ++i) {
    EXPECT_NEAR(Get("parameter b")[i], b[i] - 0.3 * (gb[i] / 4 + 0.25 * b[i]), 1e-6);
  }
}

TEST_F(TrainingProgramTest, TheNextStepStartsAtZero) {
  Build("{kind: sgd, lr: 0.1}");
  Run("forward");
  Run("backward");
  Run("update");
  EXPECT_EQ(Get("gradient w"), std::vector<double>(20, 0));
  EXPECT_EQ(Get("accumulator loss_sum")[0], 0);
  EXPECT_EQ(Get("accumulator token_count")[0], 0);
}

// torch.nn.utils.clip_grad_norm_: times max_norm / (norm + 1e-6), at most 1; the reported norm
// is the one before.
TEST_F(TrainingProgramTest, ClipsByTheGlobalNorm) {
  Build("{kind: sgd, lr: 0.1, clip_norm: 0.01}");
  Run("forward");
  Run("backward");
  std::vector<double> w = Get("parameter w"), gw = Get("gradient w"), gb = Get("gradient b");
  double norm = Norm({gw, gb}) / 4;
  ASSERT_GT(norm, 0.01);
  Run("update");
  for (size_t i = 0; i < w.size(); ++i) {
    EXPECT_NEAR(Get("parameter w")[i], w[i] - 0.1 * gw[i] / 4 * 0.01 / (norm + 1e-6), 1e-7);
  }
  EXPECT_NEAR(Get("output grad_norm")[0], norm, 1e-6);
}

TEST_F(TrainingProgramTest, ClippingLeavesSmallGradients) {
  Build("{kind: sgd, lr: 0.1, clip_norm: 1000}");
  Run("forward");
  Run("backward");
  std::vector<double> w = Get("parameter w"), gw = Get("gradient w");
  Run("update");
  for (size_t i = 0; i < w.size(); ++i) {
    EXPECT_NEAR(Get("parameter w")[i], w[i] - 0.1 * gw[i] / 4, 1e-7);
  }
}

TEST_F(TrainingProgramTest, AdamwKeepsItsStates) {
  Build("{kind: adamw, lr: 0.1, betas: [0.8, 0.9], eps: 1.0e-3, weight_decay: 0.5}");
  std::vector<double> w = Get("parameter w"), m(20, 0), v(20, 0);
  for (int step = 1; step <= 3; ++step) {
    Set("scalar step", {static_cast<double>(step)});
    Run("forward");
    Run("backward");
    std::vector<double> g = Get("gradient w");
    Run("update");
    for (size_t i = 0; i < w.size(); ++i) {
      double gradient = g[i] / 4;
      w[i] *= 1 - 0.1 * 0.5;
      m[i] = 0.8 * m[i] + 0.2 * gradient;
      v[i] = 0.9 * v[i] + 0.1 * gradient * gradient;
      double rate = 0.1 / (1 - std::pow(0.8, step));
      w[i] -= rate * m[i] / (std::sqrt(v[i] / (1 - std::pow(0.9, step))) + 1e-3);
      ASSERT_NEAR(Get("parameter w")[i], w[i], 1e-5) << "step " << step << ", element " << i;
      EXPECT_NEAR(Get("optimizer_state w exp_avg")[i], m[i], 1e-6);
      EXPECT_NEAR(Get("optimizer_state w exp_avg_sq")[i], v[i], 1e-6);
    }
  }
}

TEST_F(TrainingProgramTest, ABatchWithoutValidTokensChangesNothing) {
  Build("{kind: sgd, lr: 0.1, clip_norm: 1}");
  Set("input labels", std::vector<double>(6, -100));
  std::vector<double> w = Get("parameter w");
  Run("forward");
  Run("backward");
  Run("update");
  for (size_t i = 0; i < w.size(); ++i) EXPECT_FLOAT_EQ(Get("parameter w")[i], w[i]);
  EXPECT_EQ(Get("output loss")[0], 0);
  EXPECT_EQ(Get("output grad_norm")[0], 0);
  EXPECT_EQ(Get("output token_count")[0], 0);
}

TEST_F(TrainingProgramTest, PredictionsAreAlignedWithTheLabels) {
  Build("{kind: sgd, lr: 0.1}");
  Run("eval");
  const std::vector<double>& logits = Get("output logits");
  const std::vector<double>& predictions = Get("output predictions");
  ASSERT_EQ(predictions.size(), 6u);
  for (int sample = 0; sample < 2; ++sample) {
    EXPECT_EQ(predictions[sample * 3], 0);
    for (int position = 1; position < 3; ++position) {
      const double* row = &logits[(sample * 3 + position - 1) * 4];
      EXPECT_EQ(predictions[sample * 3 + position], std::max_element(row, row + 4) - row);
    }
  }
}

TEST_F(TrainingProgramTest, WithoutAShiftEachPositionPredictsItself) {
  Build("{kind: sgd, lr: 0.1}", ", shift: false, ignore_index: 1");
  Run("eval");
  EXPECT_EQ(Get("output token_count")[0], 4) << "two labels are the ignored 1";
  const std::vector<double>& logits = Get("output logits");
  for (int row = 0; row < 6; ++row) {
    const double* scores = &logits[row * 4];
    EXPECT_EQ(Get("output predictions")[row], std::max_element(scores, scores + 4) - scores);
  }
}

}  // namespace
}  // namespace oriel
