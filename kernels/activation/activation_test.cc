#include <cmath>
#include <functional>

#include "kernels/testing.h"

namespace oriel::kernels {
namespace {

using testing::Attributes;
using testing::ExpectClose;
using testing::kFloatsAndBF16;
using testing::RunKernel;
using testing::Tensor;
using testing::TryKernel;

struct Kind {
  const char* name;
  std::function<double(double)> f;
};

const Kind kKinds[] = {
    {"gelu", [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }},
    {"gelu_tanh",
     [](double x) {
       return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
     }},
    {"gelu_quick", [](double x) { return x / (1 + std::exp(-1.702 * x)); }},
    {"silu", [](double x) { return x / (1 + std::exp(-x)); }},
};

// Central differences, good to about 1e-10.
double Slope(const Kind& kind, double x) {
  const double h = 1e-5;
  return (8 * (kind.f(x + h) - kind.f(x - h)) - (kind.f(x + 2 * h) - kind.f(x - 2 * h))) / (12 * h);
}

const Shape kShape = {40, 1037};

TEST(ActivationTest, Forward) {
  for (const Kind& kind : kKinds) {
    for (DType dtype : kFloatsAndBF16) {
      SCOPED_TRACE(kind.name);
      const Tensor x = Tensor::Random(dtype, kShape, 1, -6, 6);
      std::vector<double> expected;
      for (double v : x.values()) expected.push_back(kind.f(v));
      const Attributes attributes = {{"kind", kind.name}};
      ExpectClose(RunKernel("activation", {x}, {x.spec()}, attributes)[0], expected);
      ExpectClose(RunKernel("activation", {x}, {x.spec()}, attributes, 0)[0], expected);
    }
  }
}

TEST(ActivationTest, Gradient) {
  for (const Kind& kind : kKinds) {
    for (DType dtype : kFloatsAndBF16) {
      SCOPED_TRACE(kind.name);
      const Tensor dy = Tensor::Random(dtype, kShape, 2);
      const Tensor x = Tensor::Random(dtype, kShape, 3, -6, 6);
      const auto dyv = dy.values(), xv = x.values();
      std::vector<double> expected;
      for (size_t i = 0; i < xv.size(); ++i) expected.push_back(dyv[i] * Slope(kind, xv[i]));
      const double slack = dtype == DType::kF64 ? 1e4 : 1;
      const Attributes attributes = {{"kind", kind.name}};
      ExpectClose(RunKernel("activation_grad", {dy, x}, {x.spec()}, attributes)[0], expected,
                  slack);
    }
  }
}

TEST(ActivationTest, GatedForwardAndGradient) {
  for (const Kind& kind : kKinds) {
    for (DType dtype : kFloatsAndBF16) {
      SCOPED_TRACE(kind.name);
      const Tensor dy = Tensor::Random(dtype, kShape, 4);
      const Tensor gate = Tensor::Random(dtype, kShape, 5, -6, 6);
      const Tensor up = Tensor::Random(dtype, kShape, 6);
      const auto d = dy.values(), g = gate.values(), u = up.values();
      std::vector<double> y, gate_grad, up_grad;
      for (size_t i = 0; i < g.size(); ++i) {
        y.push_back(kind.f(g[i]) * u[i]);
        gate_grad.push_back(d[i] * u[i] * Slope(kind, g[i]));
        up_grad.push_back(d[i] * kind.f(g[i]));
      }
      const Attributes attributes = {{"kind", kind.name}};
      ExpectClose(RunKernel("gated_activation", {gate, up}, {up.spec()}, attributes)[0], y);
      const auto grads =
          RunKernel("gated_activation_grad", {dy, gate, up}, {up.spec(), up.spec()}, attributes);
      ExpectClose(grads[0], gate_grad, dtype == DType::kF64 ? 1e4 : 1);
      ExpectClose(grads[1], up_grad);
    }
  }
}

TEST(ActivationTest, LargeArgumentsStayFinite) {
  for (const Kind& kind : kKinds) {
    const Tensor x({DType::kF32, {4}}, {-200, -20, 20, 200});
    const Attributes attributes = {{"kind", kind.name}};
    ExpectClose(RunKernel("activation", {x}, {x.spec()}, attributes)[0], {0, 0, 20, 200});
    const Tensor one({DType::kF32, {4}}, {1, 1, 1, 1});
    ExpectClose(RunKernel("activation_grad", {one, x}, {x.spec()}, attributes)[0], {0, 0, 1, 1});
  }
}

TEST(ActivationTest, UnknownKindIsInvalid) {
  const Tensor x = Tensor::Random(DType::kF32, {4}, 1);
  EXPECT_EQ(TryKernel("activation", {x}, {x.spec()}, {{"kind", "swish9"}}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace oriel::kernels
