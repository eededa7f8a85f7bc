#include "kernels/loss/cross_entropy.h"

#include <cmath>

#include "gmock/gmock.h"
#include "kernels/testing.h"

namespace oriel::kernels {
namespace {

using ::testing::AllOf;
using testing::ExpectClose;
using ::testing::HasSubstr;
using testing::kFloats;
using testing::RunKernel;
using testing::Tensor;
using testing::TryKernel;

struct Size {
  int64_t rows, vocabulary;
};
const Size kSizes[] = {{1, 1}, {6, 5}, {65, 1037}};

// Every third label is ignored.
Tensor Labels(DType dtype, const Size& s, double ignored) {
  std::vector<double> labels;
  for (int64_t i = 0; i < s.rows; ++i) {
    labels.push_back(i % 3 == 1 ? ignored : static_cast<double>(i * 7 % s.vocabulary));
  }
  return Tensor({dtype, {1, s.rows}}, labels);
}

TEST(CrossEntropyTest, LossAndGradient) {
  for (DType dtype : kFloats) {
    for (DType index : {DType::kI64, DType::kI32}) {
      for (const Size& s : kSizes) {
        for (int64_t ignored : {-100, 0}) {
          const int64_t n = s.vocabulary;
          const Tensor x = Tensor::Random(dtype, {1, s.rows, n}, 1, -10, 10);
          const Tensor labels = Labels(index, s, static_cast<double>(ignored));
          const std::vector<double> logits = x.values(), label = labels.values();
          double loss = 0, count = 0;
          std::vector<double> lse(s.rows), dx(logits.size());
          const Tensor cotangent = Tensor::Scalar(dtype, 0.75);
          for (int64_t r = 0; r < s.rows; ++r) {
            double sum = 0;
            for (int64_t i = 0; i < n; ++i) sum += std::exp(logits[r * n + i]);
            lse[r] = std::log(sum);
            if (label[r] == static_cast<double>(ignored)) continue;
            const int64_t target = static_cast<int64_t>(label[r]);
            loss += lse[r] - logits[r * n + target];
            count += 1;
            for (int64_t i = 0; i < n; ++i) {
              dx[r * n + i] = 0.75 * (std::exp(logits[r * n + i] - lse[r]) - (i == target ? 1 : 0));
            }
          }
          const auto results = RunKernel("cross_entropy", {x, labels},
                                         {{dtype, {}}, {dtype, {}}, {dtype, labels.shape()}},
                                         {{"ignore_index", ignored}});
          ExpectClose(results[0], {loss});
          ExpectClose(results[1], {count});
          ExpectClose(results[2], lse);
          ExpectClose(RunKernel("cross_entropy_grad", {cotangent, x, labels, results[2]},
                                {x.spec()}, {{"ignore_index", ignored}})[0],
                      dx, 2);
        }
      }
    }
  }
}

TEST(CrossEntropyTest, LargeLogitsDoNotOverflow) {
  const Tensor x({DType::kF32, {1, 3}}, {1000, -1000, 999});
  const Tensor label({DType::kI64, {1}}, {0});
  const auto results = RunKernel("cross_entropy", {x, label},
                                 {{DType::kF32, {}}, {DType::kF32, {}}, {DType::kF32, {1}}});
  ExpectClose(results[0], {std::log(1 + std::exp(-1.0))});
}

TEST(CrossEntropyTest, LabelOutOfRangeIsNamed) {
  const Tensor x = Tensor::Random(DType::kF32, {2, 4}, 1);
  for (double bad : {4.0, -1.0}) {
    const Tensor labels({DType::kI64, {2}}, {3, bad});
    const absl::Status status =
        TryKernel("cross_entropy", {x, labels},
                  {{DType::kF32, {}}, {DType::kF32, {}}, {DType::kF32, {2}}})
            .status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("label " + std::to_string(static_cast<int>(bad)) + " of row 1"),
                      HasSubstr("outside [0, 4)"), HasSubstr("ignore_index -100")));
  }
}

}  // namespace
}  // namespace oriel::kernels
