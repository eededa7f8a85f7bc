#include "kernels/recurrence/delta_scan.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/common/checks.h"
#include "kernels/testing.h"

namespace oriel::kernels {
namespace {

using testing::ExpectClose;
using testing::kFloatsAndBF16;
using testing::RunKernel;
using testing::Tensor;
using testing::TryKernel;

struct Sizes {
  Shape batch;
  int64_t n, c, k, v;

  Shape With(std::initializer_list<int64_t> more) const {
    Shape shape = batch;
    shape.insert(shape.end(), more);
    return shape;
  }
  std::string text() const {
    return absl::StrCat(n, " chunks of ", c, " positions, states of ", k, " by ", v);
  }
};

// Operands of a scan. Small keys and decays below 1 keep its states small.
std::vector<Tensor> Operands(DType dtype, const Sizes& s, bool decays_rows, bool adds) {
  const DType wide = ComputeDType(dtype);
  const double most = 1.0 / static_cast<double>(s.k + s.c);
  std::vector<Tensor> operands = {
      Tensor::Random(dtype, s.With({s.n, s.c, s.v}), 1),
      Tensor::Random(dtype, s.With({s.n, s.c, s.k}), 2, -most, most),
      Tensor::Random(dtype, s.With({s.n, s.c, s.k}), 3, -most, most),
      Tensor::Random(wide, s.With({s.n, decays_rows ? s.k : 1, 1}), 4, 0.5, 1),
      Tensor::Random(wide, s.With({s.k, s.v}), 5)};
  if (adds) operands.push_back(Tensor::Random(dtype, s.With({s.n, s.k, s.v}), 6));
  return operands;
}

std::vector<TensorSpec> Results(const std::vector<Tensor>& operands, const Sizes& s) {
  return {
      operands[0].spec(), {operands[0].spec().dtype, s.With({s.n, s.k, s.v})}, operands[4].spec()};
}

// written, states and last, by the definition.
std::vector<std::vector<double>> Expected(const std::vector<Tensor>& operands, const Sizes& s,
                                          bool reverse) {
  std::vector<std::vector<double>> in;
  for (const Tensor& operand : operands) in.push_back(operand.values());
  std::vector<double> written = in[0], last = in[4];
  std::vector<double> states(operands[4].size() * s.n);
  const int64_t batches = s.k * s.v == 0 ? 0 : operands[4].size() / (s.k * s.v);
  const int64_t factors = operands[3].shape()[operands[3].shape().size() - 2];
  for (int64_t b = 0; b < batches; ++b) {
    double* const state = last.data() + b * s.k * s.v;
    for (int64_t step = 0; step < s.n; ++step) {
      const int64_t chunk = b * s.n + (reverse ? s.n - 1 - step : step);
      double* const x = written.data() + chunk * s.c * s.v;
      for (int64_t at = 0; at < s.k * s.v; ++at) states[chunk * s.k * s.v + at] = state[at];
      for (int64_t p = 0; p < s.c; ++p) {
        for (int64_t j = 0; j < s.k; ++j) {
          const double key = in[1][(chunk * s.c + p) * s.k + j];
          for (int64_t w = 0; w < s.v; ++w) x[p * s.v + w] += key * state[j * s.v + w];
        }
      }
      for (int64_t j = 0; j < s.k; ++j) {
        for (int64_t w = 0; w < s.v; ++w) {
          double& element = state[j * s.v + w];
          element *= in[3][chunk * factors + (factors == 1 ? 0 : j)];
          for (int64_t p = 0; p < s.c; ++p) {
            element += in[2][(chunk * s.c + p) * s.k + j] * x[p * s.v + w];
          }
          if (in.size() > 5) element += in[5][(chunk * s.k + j) * s.v + w];
        }
      }
    }
  }
  return {written, states, last};
}

TEST(DeltaScan, IsItsDefinition) {
  const Sizes cases[] = {{{}, 1, 1, 1, 1},      {{}, 3, 5, 3, 2},     {{2, 3}, 4, 16, 8, 8},
                         {{2}, 2, 64, 64, 70},  {{3}, 5, 17, 33, 40}, {{}, 2, 130, 70, 65},
                         {{2}, 2, 150, 300, 9}, {{20}, 3, 2, 4, 1},   {{0}, 2, 3, 4, 5},
                         {{2}, 2, 3, 4, 0}};
  for (const DType dtype : kFloatsAndBF16) {
    for (int bits = 0; bits < 8; ++bits) {
      const bool decays_rows = (bits & 1) != 0, adds = (bits & 2) != 0, reverse = (bits & 4) != 0;
      for (const Sizes& sizes : cases) {
        SCOPED_TRACE(absl::StrCat(std::string(runtime::DTypeName(dtype)), ", flags ", bits, ", ",
                                  sizes.text()));
        const std::vector<Tensor> operands = Operands(dtype, sizes, decays_rows, adds);
        const std::vector<Tensor> results = RunKernel(
            "delta_scan", operands, Results(operands, sizes), {{"reverse", int64_t{reverse}}});
        const std::vector<std::vector<double>> expected = Expected(operands, sizes, reverse);
        for (size_t i = 0; i < 3; ++i) ExpectClose(results[i], expected[i], /*slack=*/4);
      }
    }
  }
}

// A state goes from chunk to chunk in f32: additions that bf16 would round away are there.
TEST(DeltaScan, StateOfBF16IsF32) {
  const Sizes s{{}, 256, 1, 1, 1};
  std::vector<Tensor> operands = Operands(DType::kBF16, s, false, false);
  operands[0] = Tensor(operands[0].spec(), std::vector<double>(s.n, 1.0));
  operands[1] = Tensor(operands[1].spec(), std::vector<double>(s.n, 0.0));
  operands[2] = Tensor(operands[2].spec(), std::vector<double>(s.n, 0.0078125));
  operands[3] = Tensor(operands[3].spec(), std::vector<double>(s.n, 1.0));
  operands[4] = Tensor(operands[4].spec(), {4.0});
  const std::vector<Tensor> results = RunKernel("delta_scan", operands, Results(operands, s));
  EXPECT_EQ(results[2].values()[0], 6.0);
}

TEST(DeltaScan, RefusesShapesThatDoNotFit) {
  const Sizes s{{2}, 3, 4, 5, 6};
  const auto refused = [&](size_t index, const Shape& shape) {
    std::vector<Tensor> operands = Operands(DType::kF32, s, false, true);
    const std::vector<TensorSpec> results = Results(operands, s);
    operands[index] = Tensor::Random(DType::kF32, shape, 7);
    return !TryKernel("delta_scan", operands, results).ok();
  };
  EXPECT_TRUE(refused(0, {4, 6}));
  EXPECT_TRUE(refused(0, {2, 3, 4, 7}));
  EXPECT_TRUE(refused(1, {2, 3, 5, 5}));
  EXPECT_TRUE(refused(2, {2, 3, 4, 6}));
  EXPECT_TRUE(refused(3, {2, 3, 2, 1}));
  EXPECT_TRUE(refused(4, {2, 6, 5}));
  EXPECT_TRUE(refused(5, {2, 3, 4, 6}));
}

}  // namespace
}  // namespace oriel::kernels
