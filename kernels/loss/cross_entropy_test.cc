#include "kernels/loss/cross_entropy.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "kernels/testing.h"

namespace oriel::kernels {
namespace {

using ::testing::AllOf;
using testing::ColumnsOf;
using testing::ExpectClose;
using ::testing::HasSubstr;
using testing::kFloats;
using testing::kFloatsAndBF16;
using testing::RunKernel;
using testing::Tensor;
using testing::TryKernel;

struct Size {
  int64_t rows, vocabulary;
};
const Size kSizes[] = {{1, 1}, {6, 5}, {65, 1037}};

DType WideOf(DType dtype) { return dtype == DType::kBF16 ? DType::kF32 : dtype; }

// Every third label is ignored.
Tensor Labels(DType dtype, const Size& s, double ignored) {
  std::vector<double> labels;
  for (int64_t i = 0; i < s.rows; ++i) {
    labels.push_back(i % 3 == 1 ? ignored : static_cast<double>(i * 7 % s.vocabulary));
  }
  return Tensor({dtype, {1, s.rows}}, labels);
}

// Of the sum of the losses, and of each row's.
void ExpectLossAndGradient(DType dtype, DType index, const Size& s, int64_t ignored) {
  const int64_t n = s.vocabulary;
  const DType wide = WideOf(dtype);
  const Tensor x = Tensor::Random(dtype, {1, s.rows, n}, 1, -10, 10);
  const Tensor labels = Labels(index, s, static_cast<double>(ignored));
  const std::vector<double> logits = x.values(), label = labels.values();
  double loss = 0, count = 0;
  std::vector<double> lse(s.rows), losses(s.rows), dx(logits.size()), dx_of_rows(logits.size());
  const Tensor cotangent = Tensor::Scalar(wide, 0.75);
  const Tensor cotangents = Tensor::Random(wide, {1, s.rows}, 2, -1, 1);
  for (int64_t r = 0; r < s.rows; ++r) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += std::exp(logits[r * n + i]);
    lse[r] = std::log(sum);
    if (label[r] == static_cast<double>(ignored)) continue;
    const int64_t target = static_cast<int64_t>(label[r]);
    losses[r] = lse[r] - logits[r * n + target];
    loss += losses[r];
    count += 1;
    for (int64_t i = 0; i < n; ++i) {
      const double of_loss = std::exp(logits[r * n + i] - lse[r]) - (i == target ? 1 : 0);
      dx[r * n + i] = 0.75 * of_loss;
      dx_of_rows[r * n + i] = cotangents.values()[r] * of_loss;
    }
  }
  const auto results =
      RunKernel("cross_entropy", {x, labels}, {{wide, {}}, {wide, {}}, {wide, labels.shape()}},
                {{"ignore_index", ignored}});
  ExpectClose(results[0], {loss});
  ExpectClose(results[1], {count});
  ExpectClose(results[2], lse);
  const TensorSpec row = {wide, labels.shape()};
  const auto of_rows =
      RunKernel("token_losses", {x, labels}, {row, row}, {{"ignore_index", ignored}});
  ExpectClose(of_rows[0], losses);
  EXPECT_EQ(of_rows[1].values(), results[2].values());
  for (int in_place : {-1, 1}) {
    auto gradient = [&](const Tensor& of) {
      return RunKernel("cross_entropy_grad", {of, x, labels, results[2]}, {x.spec()},
                       {{"ignore_index", ignored}}, in_place)[0];
    };
    ExpectClose(gradient(cotangent), dx, 2);
    ExpectClose(gradient(cotangents), dx_of_rows, 2);
  }
}

TEST(CrossEntropyTest, LossAndGradient) {
  for (DType dtype : kFloatsAndBF16) {
    for (DType index : {DType::kI64, DType::kI32}) {
      for (const Size& s : kSizes) {
        for (int64_t ignored : {-100, 0}) ExpectLossAndGradient(dtype, index, s, ignored);
      }
    }
  }
}

// One for each row, or one for all.
TEST(CrossEntropyTest, CotangentsOfOtherShapesAreRefused) {
  const Tensor x = Tensor::Random(DType::kF32, {2, 3, 4}, 1);
  const Tensor labels({DType::kI64, {2, 3}}, {0, 1, 2, 3, 0, 1});
  const Tensor row = Tensor::Random(DType::kF32, {2, 3}, 2);
  for (const Shape& shape : {Shape{6}, Shape{1}, Shape{2, 3, 1}}) {
    const Tensor cotangent = Tensor::Random(DType::kF32, shape, 3);
    const absl::Status status =
        TryKernel("cross_entropy_grad", {cotangent, x, labels, row}, {x.spec()}, {}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  }
}

// Rows that begin and end anywhere between packs of 16 bytes, with the label anywhere in them.
TEST(CrossEntropyTest, RowsOfAnyAlignment) {
  for (DType dtype : kFloatsAndBF16) {
    for (int64_t vocabulary = 1; vocabulary < 20; ++vocabulary) {
      ExpectLossAndGradient(dtype, DType::kI64, {25, vocabulary}, -100);
    }
    for (int64_t vocabulary = 1024; vocabulary < 1032; ++vocabulary) {
      ExpectLossAndGradient(dtype, DType::kI64, {5, vocabulary}, -100);
    }
  }
}

// More rows than the threads that sum their losses load at a time.
TEST(CrossEntropyTest, ManyRows) {
  ExpectLossAndGradient(DType::kF32, DType::kI32, {5000, 2}, -100);
}

TEST(CrossEntropyTest, NaNReachesTheResult) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  constexpr int64_t kWidth = 21;
  for (DType dtype : kFloatsAndBF16) {
    const TensorSpec row = {WideOf(dtype), {2}}, scalar = {WideOf(dtype), {}};
    for (int64_t at = 0; at < kWidth; ++at) {
      std::vector<double> logits(2 * kWidth, 1.0);
      logits[kWidth + at] = kNaN;
      const auto results =
          RunKernel("cross_entropy",
                    {Tensor({dtype, {2, kWidth}}, logits), Tensor({DType::kI64, {2}}, {3, 4})},
                    {scalar, scalar, row});
      ExpectClose(Tensor({row.dtype, {1}}, {results[2].values()[0]}), {1 + std::log(kWidth)});
      EXPECT_TRUE(std::isnan(results[2].values()[1]));
      EXPECT_TRUE(std::isnan(results[0].values()[0]));
    }
  }
}

TEST(CrossEntropyTest, StepsMakeTheWhole) {
  for (DType dtype : kFloats) {
    for (DType index : {DType::kI64, DType::kI32}) {
      for (const Size& s : kSizes) {
        const Tensor x = Tensor::Random(dtype, {1, s.rows, s.vocabulary}, 1, -10, 10);
        const Tensor labels = Labels(index, s, -100);
        const TensorSpec row = {dtype, labels.shape()};
        const auto whole = RunKernel("cross_entropy", {x, labels}, {{dtype, {}}, {dtype, {}}, row});
        const Tensor max = RunKernel("reduce_max", {x}, {row}, {{"dims", Shape{2}}})[0];
        const std::vector<double> sum = RunKernel("sum_exp", {x, max}, {row})[0].values();
        const std::vector<double> logit = RunKernel("label_logits", {x, labels}, {row})[0].values();
        double loss = 0;
        std::vector<double> logsumexp;
        for (int64_t r = 0; r < s.rows; ++r) {
          logsumexp.push_back(max.values()[r] + std::log(sum[r]));
          if (labels.values()[r] != -100) loss += logsumexp[r] - logit[r];
        }
        ExpectClose(whole[2], logsumexp);
        ExpectClose(whole[0], {loss}, 4);
      }
    }
  }
}

// On pieces of the classes: sums of exponentials and the labels' logits add up, gradients join.
TEST(CrossEntropyTest, PiecesOfTheClasses) {
  const Size s = {65, 1037};
  const int64_t cuts[] = {0, 300, 1037};
  for (DType dtype : kFloats) {
    const Tensor x = Tensor::Random(dtype, {1, s.rows, s.vocabulary}, 1, -10, 10);
    const Tensor labels = Labels(DType::kI64, s, -100);
    const Tensor shift = Tensor::Random(dtype, labels.shape(), 2, 9, 11);
    const Tensor cotangent = Tensor::Scalar(dtype, 0.75);
    const TensorSpec row = {dtype, labels.shape()};
    const Tensor logits = RunKernel("label_logits", {x, labels}, {row})[0];
    const Tensor grad =
        RunKernel("cross_entropy_grad", {cotangent, x, labels, shift}, {x.spec()})[0];
    std::vector<double> sum(s.rows), logit(s.rows);
    for (int k = 0; k < 2; ++k) {
      const int64_t size = cuts[k + 1] - cuts[k];
      const Tensor piece = ColumnsOf(x, cuts[k], size);
      const Tensor first = Tensor::Scalar(DType::kI64, static_cast<double>(cuts[k]));
      const testing::Attributes classes = {{"classes", s.vocabulary}};
      const std::vector<double> sums = RunKernel("sum_exp", {piece, shift}, {row})[0].values();
      const std::vector<double> own =
          RunKernel("label_logits", {piece, labels, first}, {row}, classes)[0].values();
      for (int64_t r = 0; r < s.rows; ++r) {
        sum[r] += sums[r];
        EXPECT_TRUE(logit[r] == 0 || own[r] == 0);
        logit[r] += own[r];
      }
      ExpectClose(RunKernel("cross_entropy_grad", {cotangent, piece, labels, shift, first},
                            {piece.spec()}, classes)[0],
                  ColumnsOf(grad, cuts[k], size).values());
    }
    ExpectClose(RunKernel("sum_exp", {x, shift}, {row})[0], sum, 4);
    EXPECT_EQ(logits.values(), logit);
  }
}

TEST(CrossEntropyTest, LabelOutOfTheWholeIsNamedOnAPiece) {
  const Tensor piece = Tensor::Random(DType::kF32, {2, 4}, 1);
  const Tensor row = Tensor::Random(DType::kF32, {2}, 2), one = Tensor::Scalar(DType::kF32, 1);
  const testing::Attributes classes = {{"classes", int64_t{8}}};
  for (double at : {0.0, 4.0}) {
    const Tensor first = Tensor::Scalar(DType::kI64, at);
    const auto run = [&](double label) {
      const Tensor labels({DType::kI64, {2}}, {7, label});
      return std::vector<absl::Status>{
          TryKernel("label_logits", {piece, labels, first}, {row.spec()}, classes).status(),
          TryKernel("cross_entropy_grad", {one, piece, labels, row, first}, {piece.spec()}, classes)
              .status()};
    };
    for (const absl::Status& status : run(2)) EXPECT_TRUE(status.ok()) << status;
    for (double bad : {8.0, -1.0}) {
      for (const absl::Status& status : run(bad)) {
        EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
        EXPECT_THAT(std::string(status.message()),
                    AllOf(HasSubstr("of row 1"), HasSubstr("outside [0, 8)")));
      }
    }
  }
}

// Beside one that is masked, and one that is the least of its type.
TEST(CrossEntropyTest, LargeLogitsDoNotOverflow) {
  constexpr double kNone = -std::numeric_limits<double>::infinity(), kLeast = -3.38e38;
  for (DType dtype : kFloatsAndBF16) {
    const DType wide = WideOf(dtype);
    const Tensor x({dtype, {1, 5}}, {1000, -1000, 992, kNone, kLeast});
    const Tensor label({DType::kI64, {1}}, {0});
    const auto results =
        RunKernel("cross_entropy", {x, label}, {{wide, {}}, {wide, {}}, {wide, {1}}});
    ExpectClose(results[0], {std::log1p(std::exp(-8.0))});
    ExpectClose(results[2], {1000 + std::log1p(std::exp(-8.0))});
  }
}

TEST(CrossEntropyTest, LabelOutOfRangeIsNamed) {
  const Tensor x = Tensor::Random(DType::kF32, {2, 4}, 1);
  for (double bad : {4.0, -1.0}) {
    const Tensor labels({DType::kI64, {2}}, {3, bad});
    const absl::Status status =
        TryKernel("cross_entropy", {x, labels},
                  {{DType::kF32, {}}, {DType::kF32, {}}, {DType::kF32, {2}}})
            .status();
    const TensorSpec row = {DType::kF32, {2}};
    for (const absl::Status& own :
         {status, TryKernel("token_losses", {x, labels}, {row, row}).status()}) {
      EXPECT_EQ(own.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(own.message()),
                  AllOf(HasSubstr("label " + std::to_string(static_cast<int>(bad)) + " of row 1"),
                        HasSubstr("outside [0, 4)"), HasSubstr("ignore_index -100")));
    }
  }
}

}  // namespace
}  // namespace oriel::kernels
