#include "kernels/loss/linear_cross_entropy.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "kernels/testing.h"

namespace oriel::kernels {
namespace {

using testing::Attributes;
using testing::ExpectClose;
using ::testing::HasSubstr;
using testing::kFloats;
using testing::kRowSumSlack;
using testing::RunKernel;
using testing::Tensor;
using testing::TryKernel;
using Values = std::vector<double>;

constexpr int64_t kRows = 150, kDepth = 20, kClasses = 48;  // two chunks and a part of one

DType WideOf(DType dtype) { return dtype == DType::kBF16 ? DType::kF32 : dtype; }

struct Problem {
  DType dtype, index = DType::kI64;
  bool transposed = false, has_bias = true;
  Tensor input, weight, bias, labels, cotangent;

  Problem(DType type, bool is_transposed, bool with_bias, DType labels_type = DType::kI64)
      : dtype(type), index(labels_type), transposed(is_transposed), has_bias(with_bias) {
    input = Tensor::Random(dtype, {3, kRows / 3, kDepth}, 1);
    weight = Tensor::Random(dtype, transposed ? Shape{kClasses, kDepth} : Shape{kDepth, kClasses},
                            2, -0.5, 0.5);
    bias = Tensor::Random(dtype, {kClasses}, 3);
    Values values;
    for (int64_t row = 0; row < kRows; ++row) {
      values.push_back(row % 7 == 3 ? -100 : static_cast<double>(row * 11 % kClasses));
    }
    labels = Tensor({index, {3, kRows / 3}}, values);
    cotangent = Tensor::Scalar(WideOf(dtype), 0.75);
  }

  TensorSpec Wide(const Shape& shape) const { return {WideOf(dtype), shape}; }
  Shape Outer() const { return labels.shape(); }

  Attributes With(Attributes more = {}) const {
    more["transpose_weight"] = int64_t{transposed};
    more.try_emplace("chunk", int64_t{64});
    return more;
  }
  std::vector<Tensor> Operands(std::vector<Tensor> before, std::vector<Tensor> after = {}) const {
    if (has_bias) before.push_back(bias);
    before.insert(before.end(), after.begin(), after.end());
    return before;
  }

  std::vector<Tensor> Loss() const {
    return RunKernel("linear_cross_entropy", Operands({input, weight, labels}),
                     {Wide({}), Wide({}), Wide(Outer())}, With());
  }
  std::vector<Tensor> Grad(const Tensor& logsumexp, const std::vector<TensorSpec>& results) const {
    return RunKernel("linear_cross_entropy_grad",
                     Operands({cotangent, input, weight, labels, logsumexp}), results, With());
  }
};

// In double, with logits as they are stored.
struct Reference {
  Values logits, logsumexp, input, weight, bias;
  double loss = 0, count = 0;

  explicit Reference(const Problem& p) {
    const Values x = p.input.values(), w = p.weight.values(), b = p.bias.values(),
                 labels = p.labels.values();
    const auto weight_at = [&](int64_t k, int64_t v) {
      return p.transposed ? v * kDepth + k : k * kClasses + v;
    };
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t v = 0; v < kClasses; ++v) {
        double sum = p.has_bias ? b[v] : 0;
        for (int64_t k = 0; k < kDepth; ++k) sum += x[row * kDepth + k] * w[weight_at(k, v)];
        logits.push_back(sum);
      }
    }
    logits = Tensor({p.dtype, {kRows, kClasses}}, logits).values();
    input.resize(kRows * kDepth);
    weight.resize(kDepth * kClasses);
    bias.resize(kClasses);
    for (int64_t row = 0; row < kRows; ++row) {
      double sum = 0;
      for (int64_t v = 0; v < kClasses; ++v) sum += std::exp(logits[row * kClasses + v]);
      logsumexp.push_back(std::log(sum));
      if (labels[row] < 0) continue;
      count += 1;
      loss += logsumexp[row] - logits[row * kClasses + static_cast<int64_t>(labels[row])];
      for (int64_t v = 0; v < kClasses; ++v) {
        const double is_label = static_cast<int64_t>(labels[row]) == v ? 1 : 0;
        const double g = 0.75 * (std::exp(logits[row * kClasses + v] - logsumexp[row]) - is_label);
        bias[v] += g;
        for (int64_t k = 0; k < kDepth; ++k) {
          input[row * kDepth + k] += g * w[weight_at(k, v)];
          weight[weight_at(k, v)] += g * x[row * kDepth + k];
        }
      }
    }
  }
};

TEST(LinearCrossEntropyTest, IsTheLossOfTheLogits) {
  for (DType dtype : kFloats) {
    for (const bool transposed : {false, true}) {
      const Problem problem(dtype, transposed, /*with_bias=*/transposed,
                            transposed ? DType::kI32 : DType::kI64);
      const Reference reference(problem);
      const std::vector<Tensor> results = problem.Loss();
      ExpectClose(results[0], {reference.loss}, 4);
      EXPECT_EQ(results[1].values(), Values{reference.count});
      ExpectClose(results[2], reference.logsumexp, 2);
    }
  }
}

TEST(LinearCrossEntropyTest, LossesOfTokens) {
  for (DType dtype : kFloats) {
    for (const bool transposed : {false, true}) {
      const Problem problem(dtype, transposed, /*with_bias=*/transposed);
      const Reference reference(problem);
      const TensorSpec row = problem.Wide(problem.Outer());
      const std::vector<Tensor> results = RunKernel(
          "linear_token_losses", problem.Operands({problem.input, problem.weight, problem.labels}),
          {row, row}, problem.With());
      Values losses;
      for (int64_t i = 0; i < kRows; ++i) {
        const double label = problem.labels.values()[i];
        const auto at = static_cast<size_t>(i * kClasses + static_cast<int64_t>(label));
        losses.push_back(label < 0 ? 0 : reference.logsumexp[i] - reference.logits[at]);
      }
      ExpectClose(results[0], losses, 4);
      EXPECT_EQ(results[1].values(), problem.Loss()[2].values());
      // Of a row, the input's gradient is as large as its cotangent.
      std::vector<TensorSpec> specs = {problem.input.spec(), problem.weight.spec()};
      if (problem.has_bias) specs.push_back(problem.bias.spec());
      const auto gradients = [&](const Tensor& cotangent) {
        return RunKernel("linear_cross_entropy_grad",
                         problem.Operands({cotangent, problem.input, problem.weight, problem.labels,
                                           results[1]}),
                         specs, problem.With());
      };
      const Tensor equal(row, Values(kRows, 0.75)),
          random = Tensor::Random(WideOf(dtype), row.shape, 7);
      const std::vector<Tensor> all = gradients(problem.cotangent), of_rows = gradients(equal);
      for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(of_rows[i].values(), all[i].values());
      Values scaled = reference.input;
      for (int64_t i = 0; i < kRows * kDepth; ++i) scaled[i] *= random.values()[i / kDepth] / 0.75;
      ExpectClose(gradients(random)[0], scaled, 4);
    }
  }
}

TEST(LinearCrossEntropyTest, GradientsOfAllChunks) {
  for (DType dtype : kFloats) {
    for (const bool transposed : {false, true}) {
      const Problem problem(dtype, transposed, /*with_bias=*/!transposed);
      const Reference reference(problem);
      const Tensor logsumexp = problem.Loss()[2];
      std::vector<TensorSpec> specs = {problem.input.spec(), problem.weight.spec()};
      if (problem.has_bias) specs.push_back(problem.bias.spec());
      const std::vector<Tensor> results = problem.Grad(logsumexp, specs);
      ExpectClose(results[0], reference.input, 4);
      ExpectClose(results[1], reference.weight, 4 * kRowSumSlack);
      if (problem.has_bias) ExpectClose(results[2], reference.bias, 4 * kRowSumSlack);
      // Of the input alone: the same bits.
      const std::vector<Tensor> alone = problem.Grad(logsumexp, {problem.input.spec()});
      EXPECT_EQ(alone[0].values(), results[0].values());
    }
  }
}

// Logits and their cotangent are rounded, sums are not: gradients of weight and bias in f32 are
// those of the reference with the rounding of each cotangent, in bf16 these rounded once.
TEST(LinearCrossEntropyTest, SumsOfBF16AreF32) {
  const Problem problem(DType::kBF16, /*is_transposed=*/true, /*with_bias=*/true);
  const Reference reference(problem);
  const std::vector<Tensor> loss = problem.Loss();
  EXPECT_NEAR(loss[0].values()[0], reference.loss, 1e-3 * reference.loss);
  EXPECT_EQ(loss[1].values(), Values{reference.count});
  const std::vector<Tensor> wide = problem.Grad(
      loss[2],
      {problem.input.spec(), problem.Wide(problem.weight.shape()), problem.Wide({kClasses})});
  const std::vector<Tensor> narrow =
      problem.Grad(loss[2], {problem.input.spec(), problem.weight.spec(), problem.bias.spec()});
  for (size_t i : {1, 2}) {
    const Values& expected = i == 1 ? reference.weight : reference.bias;
    const Values values = wide[i].values();
    for (size_t j = 0; j < expected.size(); ++j) EXPECT_NEAR(values[j], expected[j], 0.02) << j;
    EXPECT_EQ(narrow[i].values(), Tensor(narrow[i].spec(), values).values());
  }
}

// The chunk is the kernel's own choice; here all rows are one.
TEST(LinearCrossEntropyTest, OneChunkIsTheUnfusedLoss) {
  for (DType dtype : testing::kFloatsAndBF16) {
    const Problem problem(dtype, /*is_transposed=*/false, /*with_bias=*/true);
    const Tensor logits =
        RunKernel("linear", {problem.input, problem.weight, problem.bias},
                  {{dtype, {3, kRows / 3, kClasses}}}, {{"transpose_weight", int64_t{0}}})[0];
    const std::vector<TensorSpec> specs = {problem.Wide({}), problem.Wide({}),
                                           problem.Wide(problem.Outer())};
    const auto unfused = RunKernel("cross_entropy", {logits, problem.labels}, specs);
    const auto fused =
        RunKernel("linear_cross_entropy",
                  problem.Operands({problem.input, problem.weight, problem.labels}), specs, {});
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(fused[i].values(), unfused[i].values());
    const Tensor g =
        RunKernel("cross_entropy_grad", {problem.cotangent, logits, problem.labels, unfused[2]},
                  {logits.spec()})[0];
    const auto gradients = RunKernel(
        "linear_cross_entropy_grad",
        problem.Operands(
            {problem.cotangent, problem.input, problem.weight, problem.labels, fused[2]}),
        {problem.input.spec(), problem.Wide(problem.weight.shape()), problem.Wide({kClasses})}, {});
    EXPECT_EQ(gradients[0].values(),
              RunKernel("linear", {g, problem.weight}, {problem.input.spec()},
                        {{"transpose_weight", int64_t{1}}})[0]
                  .values());
    EXPECT_EQ(gradients[1].values(), RunKernel("linear_weight_grad", {problem.input, g},
                                               {problem.Wide(problem.weight.shape())},
                                               {{"transpose_weight", int64_t{0}}})[0]
                                         .values());
  }
}

// Two pieces of the classes, each with its own part of weight and bias.
struct Pieces {
  explicit Pieces(const Problem& whole) {
    const Values w = whole.weight.values(), b = whole.bias.values();
    for (int64_t piece = 0; piece < 2; ++piece) {
      constexpr int64_t kHalf = kClasses / 2;
      Values part, own_bias(b.begin() + piece * kHalf, b.begin() + (piece + 1) * kHalf);
      for (int64_t k = 0; k < kDepth; ++k) {
        const auto row = w.begin() + k * kClasses + piece * kHalf;
        part.insert(part.end(), row, row + kHalf);
      }
      weights.push_back(Tensor({whole.dtype, {kDepth, kHalf}}, part));
      biases.push_back(Tensor({whole.dtype, {kHalf}}, own_bias));
    }
  }
  std::vector<Tensor> weights, biases;
};

TEST(LinearCrossEntropyTest, LogsumexpsOfBlocksOfPieces) {
  for (DType dtype : kFloats) {
    const Problem problem(dtype, /*is_transposed=*/false, /*with_bias=*/true);
    const Reference reference(problem);
    const Pieces pieces(problem);
    constexpr int64_t kBlocks = 3, kWidth = kClasses / 2 / kBlocks;
    Values label_logits(kRows, 0.0);
    Shape by_block = problem.Outer();
    by_block.push_back(kBlocks);
    for (int64_t piece = 0; piece < 2; ++piece) {
      const auto results =
          RunKernel("linear_logsumexp",
                    {problem.input, pieces.weights[piece], problem.labels, pieces.biases[piece],
                     Tensor({DType::kI64, {}}, {static_cast<double>(piece * kBlocks)})},
                    {problem.Wide(by_block), problem.Wide(problem.Outer())},
                    problem.With({{"blocks", kBlocks}, {"all_blocks", 2 * kBlocks}}));
      Values expected;
      for (int64_t row = 0; row < kRows; ++row) {
        for (int64_t block = 0; block < kBlocks; ++block) {
          double sum = 0;
          for (int64_t v = 0; v < kWidth; ++v) {
            sum +=
                std::exp(reference.logits[row * kClasses + (piece * kBlocks + block) * kWidth + v]);
          }
          expected.push_back(std::log(sum));
        }
      }
      ExpectClose(results[0], expected, 2);
      const Values found = results[1].values();
      for (int64_t row = 0; row < kRows; ++row) label_logits[row] += found[row];
    }
    const Values labels = problem.labels.values();
    for (int64_t row = 0; row < kRows; ++row) {
      const double expected =
          labels[row] < 0 ? 0
                          : reference.logits[row * kClasses + static_cast<int64_t>(labels[row])];
      EXPECT_NEAR(label_logits[row], expected, 1e-5) << row;
    }
  }
}

TEST(LinearCrossEntropyTest, GradientsOfPieces) {
  for (DType dtype : kFloats) {
    const Problem problem(dtype, /*is_transposed=*/false, /*with_bias=*/true);
    const Reference reference(problem);
    const Pieces pieces(problem);
    const Tensor logsumexp = problem.Loss()[2];
    Values input(reference.input.size(), 0.0);
    for (int64_t piece = 0; piece < 2; ++piece) {
      const auto results = RunKernel(
          "linear_cross_entropy_grad",
          {problem.cotangent, problem.input, pieces.weights[piece], problem.labels, logsumexp,
           pieces.biases[piece],
           Tensor({DType::kI64, {}}, {static_cast<double>(piece * kClasses / 2)})},
          {problem.input.spec(), pieces.weights[piece].spec(), pieces.biases[piece].spec()},
          problem.With({{"classes", kClasses}}));
      const Values own = results[0].values(), weight = results[1].values();
      for (size_t i = 0; i < own.size(); ++i) input[i] += own[i];
      constexpr int64_t kHalf = kClasses / 2;
      for (int64_t k = 0; k < kDepth; ++k) {
        for (int64_t v = 0; v < kHalf; ++v) {
          EXPECT_NEAR(weight[k * kHalf + v], reference.weight[k * kClasses + piece * kHalf + v],
                      5e-5);
        }
      }
    }
    for (size_t i = 0; i < input.size(); ++i) EXPECT_NEAR(input[i], reference.input[i], 1e-5);
  }
}

TEST(BlockLogsumexpTest, ABlockOfMinusInfinityHasNoExponentials) {
  constexpr double kNone = -std::numeric_limits<double>::infinity();
  for (DType dtype : testing::kFloatsAndBF16) {
    const Tensor logits({dtype, {2, 4}}, {1, 2, kNone, kNone, kNone, 0.5, 0, kNone});
    const Tensor labels({DType::kI64, {2}}, {1, -100});
    const DType wide = WideOf(dtype);
    const auto results = RunKernel("block_logsumexp", {logits, labels},
                                   {{wide, {2, 2}}, {wide, {2}}}, {{"blocks", int64_t{2}}});
    const Values sums = results[0].values();
    EXPECT_NEAR(sums[0], std::log(std::exp(1) + std::exp(2)), 1e-6);
    EXPECT_EQ(sums[1], kNone);
    EXPECT_EQ(sums[2], 0.5);
    EXPECT_EQ(sums[3], 0);
    EXPECT_EQ(results[1].values(), (Values{2, 0}));
  }
}

// In the last chunk; the row is that of the launch.
TEST(LinearCrossEntropyTest, RefusesALabelOutOfRange) {
  Problem problem(DType::kF32, /*is_transposed=*/false, /*with_bias=*/false);
  Values labels = problem.labels.values();
  labels[140] = kClasses;
  problem.labels = Tensor(problem.labels.spec(), labels);
  EXPECT_THAT(
      TryKernel("linear_cross_entropy", {problem.input, problem.weight, problem.labels},
                {problem.Wide({}), problem.Wide({}), problem.Wide(problem.Outer())}, problem.With())
          .status()
          .message(),
      HasSubstr("linear_cross_entropy: label 48 of row 140 is outside [0, 48) and is not "
                "ignore_index -100"));
}

TEST(LinearCrossEntropyTest, RefusesWhatDoesNotFit) {
  const Problem problem(DType::kF32, /*is_transposed=*/false, /*with_bias=*/false);
  const std::vector<TensorSpec> results = {problem.Wide({}), problem.Wide({}),
                                           problem.Wide(problem.Outer())};
  EXPECT_THAT(TryKernel("linear_cross_entropy",
                        {problem.input, problem.weight, problem.labels, problem.labels}, results)
                  .status()
                  .message(),
              HasSubstr("linear_cross_entropy"));
  EXPECT_THAT(TryKernel("linear_logsumexp", {problem.input, problem.weight, problem.labels},
                        {problem.Wide({3, kRows / 3, 5}), problem.Wide(problem.Outer())},
                        {{"blocks", int64_t{5}}})
                  .status()
                  .message(),
              HasSubstr("classes are not a multiple of blocks"));
}

}  // namespace
}  // namespace oriel::kernels
