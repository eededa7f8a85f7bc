#include "kernels/linear/epilogues.h"

#include <cmath>

#include "gmock/gmock.h"
#include "kernels/testing.h"
#include "runtime/base/status_testing.h"

namespace oriel::kernels {
namespace {

using runtime::StatusIs;
using testing::Attributes;
using testing::ExpectClose;
using testing::kFloatsAndBF16;
using testing::RunKernel;
using testing::Tensor;
using testing::TryKernel;

constexpr double kSlack = 12;
// Of an activation: in bf16 the product may be rounded before it, 2^-8, which a slope of up to 1.13
// makes more.
double ActivationSlack(DType dtype) { return dtype == DType::kBF16 ? 1.2 * 0x1p-8 / 2e-6 : kSlack; }

struct Size {
  int64_t m, n, k;
};
// The second has rows of no multiple of 8.
const Size kSizes[] = {{6, 16, 5}, {3, 5, 7}, {33, 24, 65}};

// x [m, k] times w, [k, n] or [n, k] where it is transposed.
std::vector<double> Product(const std::vector<double>& x, const std::vector<double>& w,
                            const Size& s, bool transposed) {
  std::vector<double> y(s.m * s.n);
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t j = 0; j < s.n; ++j) {
      for (int64_t p = 0; p < s.k; ++p) {
        y[i * s.n + j] += x[i * s.k + p] * w[transposed ? j * s.k + p : p * s.n + j];
      }
    }
  }
  return y;
}

Tensor Weight(DType dtype, const Size& s, bool transposed) {
  return Tensor::Random(dtype, transposed ? Shape{s.n, s.k} : Shape{s.k, s.n}, 2);
}

double GeluTanh(double x) { return std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)); }
double Gelu(double x) { return x / 2 * (1 + GeluTanh(x)); }
double GeluSlope(double x) {
  const double t = GeluTanh(x), inner = std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
  return (1 + t) / 2 + x / 2 * (1 - t * t) * inner;
}
double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double Silu(double x) { return x * Sigmoid(x); }
double SiluSlope(double x) { return Sigmoid(x) * (1 + x * (1 - Sigmoid(x))); }

struct Kind {
  const char* name;
  double (*f)(double);
  double (*slope)(double);
};
// One that libraries apply, and one of two launches.
const Kind kKinds[] = {{"gelu_tanh", Gelu, GeluSlope}, {"silu", Silu, SiluSlope}};

template <typename Check>
void ForEachCase(const Check& check) {
  for (DType dtype : kFloatsAndBF16) {
    for (const Size& s : kSizes) {
      for (const bool transposed : {false, true}) {
        SCOPED_TRACE(::testing::Message() << runtime::DTypeName(dtype) << " " << s.m << "x" << s.n
                                          << "x" << s.k << (transposed ? " transposed" : ""));
        check(dtype, s, transposed);
      }
    }
  }
}

TEST(EpiloguesTest, ActivationOfAProduct) {
  ForEachCase([](DType dtype, const Size& s, bool transposed) {
    for (const Kind& kind : kKinds) {
      for (const bool has_bias : {false, true}) {
        std::vector<Tensor> operands = {Tensor::Random(dtype, {1, s.m, s.k}, 1),
                                        Weight(dtype, s, transposed)};
        std::vector<double> linear =
            Product(operands[0].values(), operands[1].values(), s, transposed);
        if (has_bias) {
          operands.push_back(Tensor::Random(dtype, {s.n}, 3));
          const std::vector<double> bias = operands.back().values();
          for (size_t i = 0; i < linear.size(); ++i) linear[i] += bias[i % s.n];
        }
        std::vector<double> expected;
        for (const double x : linear) expected.push_back(kind.f(x));
        const TensorSpec result{dtype, {1, s.m, s.n}};
        const Attributes attributes = {{"transpose_weight", int64_t{transposed}},
                                       {"kind", kind.name}};
        const std::vector<Tensor> both =
            RunKernel("linear_activation", operands, {result, result}, attributes);
        ExpectClose(both[0], expected, ActivationSlack(dtype));
        ExpectClose(both[1], linear, kSlack);
        ExpectClose(RunKernel("linear_activation", operands, {result}, attributes)[0], expected,
                    ActivationSlack(dtype));
      }
    }
  });
}

TEST(EpiloguesTest, GradientOfAnActivationOfAProduct) {
  ForEachCase([](DType dtype, const Size& s, bool transposed) {
    for (const Kind& kind : kKinds) {
      const Tensor dy = Tensor::Random(dtype, {s.m, s.k}, 1), w = Weight(dtype, s, transposed),
                   x = Tensor::Random(dtype, {s.m, s.n}, 4);
      std::vector<double> expected = Product(dy.values(), w.values(), s, transposed);
      const std::vector<double> at = x.values();
      for (size_t i = 0; i < expected.size(); ++i) expected[i] *= kind.slope(at[i]);
      ExpectClose(RunKernel("linear_activation_grad", {dy, w, x}, {x.spec()},
                            {{"transpose_weight", int64_t{transposed}}, {"kind", kind.name}})[0],
                  expected, ActivationSlack(dtype));
    }
  });
}

TEST(EpiloguesTest, GradientsOfWeightAndBias) {
  ForEachCase([](DType dtype, const Size& s, bool transposed) {
    // Rows: k of a Size. The gradients of bf16 are f32, or not.
    for (const DType wide : {dtype, dtype == DType::kBF16 ? DType::kF32 : dtype}) {
      const Tensor x = Tensor::Random(dtype, {s.k, s.m}, 1),
                   dy = Tensor::Random(dtype, {s.k, s.n}, 2);
      const Shape weight = transposed ? Shape{s.n, s.m} : Shape{s.m, s.n};
      const Tensor addend = Tensor::Random(wide, weight, 3);
      const std::vector<double> xs = x.values(), dys = dy.values(), before = addend.values();
      std::vector<double> product(s.m * s.n), sum = before, bias(s.n);
      for (int64_t p = 0; p < s.k; ++p) {
        for (int64_t j = 0; j < s.n; ++j) {
          bias[j] += dys[p * s.n + j];
          for (int64_t i = 0; i < s.m; ++i) {
            product[transposed ? j * s.m + i : i * s.n + j] += xs[p * s.m + i] * dys[p * s.n + j];
          }
        }
      }
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += product[i];
      const std::vector<TensorSpec> results = {{wide, weight}, {wide, {s.n}}};
      const Attributes attributes = {{"transpose_weight", int64_t{transposed}}};
      const std::vector<Tensor> alone = RunKernel("linear_grads", {x, dy}, results, attributes);
      ExpectClose(alone[0], product, kSlack);
      ExpectClose(alone[1], bias, kSlack);
      for (const int in_place : {-1, 2}) {
        const std::vector<Tensor> added =
            RunKernel("linear_grads", {x, dy, addend}, results, attributes, in_place);
        ExpectClose(added[0], sum, kSlack);
        ExpectClose(added[1], bias, kSlack);
      }
    }
  });
}

TEST(EpiloguesTest, RefusesWhatDoesNotFit) {
  const Tensor x = Tensor::Random(DType::kF32, {4, 8}, 1),
               w = Tensor::Random(DType::kF32, {8, 16}, 2),
               y = Tensor::Random(DType::kF32, {4, 16}, 3);
  const TensorSpec row{DType::kF32, {8}};
  const Attributes gelu = {{"kind", "gelu_tanh"}};
  const auto invalid = StatusIs(absl::StatusCode::kInvalidArgument, ::testing::_);
  EXPECT_THAT(TryKernel("linear_activation", {x, w}, {x.spec(), y.spec()}, gelu).status(), invalid);
  EXPECT_THAT(TryKernel("linear_activation", {x, w}, {}, gelu).status(), invalid);
  EXPECT_THAT(TryKernel("linear_activation_grad", {x, w, x}, {y.spec()}, gelu).status(), invalid);
  EXPECT_THAT(TryKernel("linear_grads", {x, y}, {w.spec(), row}, {}).status(), invalid);
  EXPECT_THAT(TryKernel("linear_grads", {x, y}, {w.spec()}, {}).status(), invalid);
}

}  // namespace
}  // namespace oriel::kernels
