// Generated code of transcendental functions against the C library's in double precision, over all
// f32: every 1009th pattern of bits.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "mlir/Parser/Parser.h"
#include "tests/generated/launch.h"

namespace oriel {
namespace {

constexpr int64_t kCount = 1 << 16;
constexpr double kSmallest = 0x1p-126;

struct Function {
  const char* name;
  const char* op;
  std::function<double(double)> exact;
  // Of the error, in units in the last place of the exact value, where that is no smaller than
  // kSmallest; or of the argument, for what it is multiplied with something that is a difference.
  double bound;
  bool of_argument = false;
};

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

const Function kFunctions[] = {
    {"exp", "oriel.exp %x", [](double x) { return std::exp(x); }, 1.5},
    {"sigmoid", "oriel.sigmoid %x", Sigmoid, 2.6},
    {"tanh", "oriel.tanh %x", [](double x) { return std::tanh(x); }, 1.6},
    {"erf", "oriel.erf %x", [](double x) { return std::erf(x); }, 2.7},
    {"silu", "oriel.activation %x {kind = \"silu\"}", [](double x) { return x * Sigmoid(x); }, 2.5,
     true},
    {"gelu_quick", "oriel.activation %x {kind = \"gelu_quick\"}",
     [](double x) { return x * Sigmoid(static_cast<double>(1.702f) * x); }, 2.5, true},
    {"gelu", "oriel.activation %x {kind = \"gelu\"}",
     [](double x) { return 0.5 * x * std::erfc(-x * M_SQRT1_2); }, 2.5, true},
    {"gelu_tanh", "oriel.activation %x {kind = \"gelu_tanh\"}",
     [](double x) { return x * Sigmoid(2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)); },
     2.5, true},
};

class FunctionsTest : public ::testing::TestWithParam<Function> {};

// How far apart floats are at |value|.
double Unit(double value) {
  const int exponent = std::max(std::ilogb(value), -126);
  return std::ldexp(1.0, exponent - 23);
}

TEST_P(FunctionsTest, IsWithinItsBound) {
  const Function& function = GetParam();
  const std::string type = "tensor<" + std::to_string(kCount) + "xf32>";
  const std::string text = "func.func @f(%x: " + type + ") -> " + type + " { %0 = " + function.op +
                           " : (" + type + ") -> " + type + " return %0 : " + type + " }";
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &CaseContext());
  ASSERT_TRUE(module);
  std::optional<Launch> launch = launchOf(module->lookupSymbol<mlir::func::FuncOp>("f"), *module);
  ASSERT_TRUE(launch);
  const kernels::KernelFn run = launch->prepare(targetsOfThisProcessor().back(), 1);
  ASSERT_TRUE(run);

  std::vector<float> x(kCount), y(kCount);
  const void* operands[] = {x.data()};
  void* results[] = {y.data()};
  double worst = 0;
  float worst_at = 0;
  for (uint64_t next = 0; next < uint64_t{1} << 32;) {
    for (float& value : x) {
      const auto bits = static_cast<uint32_t>(next);
      std::memcpy(&value, &bits, sizeof value);
      next += 1009;
    }
    ASSERT_TRUE(run({operands, results}).ok());
    for (int64_t i = 0; i < kCount; ++i) {
      if (std::isnan(x[i])) {
        ASSERT_TRUE(std::isnan(y[i]));
        continue;
      }
      const double exact = function.exact(x[i]);
      if (std::isnan(exact)) continue;  // 0 times infinity
      if (std::fabs(exact) > std::numeric_limits<float>::max()) {
        ASSERT_EQ(y[i], static_cast<float>(exact)) << "of " << x[i];
        continue;
      }
      const double error = std::fabs(y[i] - exact);
      if (function.of_argument) {
        const double unit = std::max(Unit(x[i]), kSmallest);
        if (error / unit > worst) worst = error / unit, worst_at = x[i];
      } else if (std::fabs(exact) < 2 * kSmallest) {
        ASSERT_LT(error, 4 * kSmallest) << "of " << x[i];
      } else if (error / Unit(exact) > worst) {
        worst = error / Unit(exact), worst_at = x[i];
      }
    }
  }
  RecordProperty("worst", std::to_string(worst));
  EXPECT_LE(worst, function.bound) << "at " << worst_at;
  EXPECT_GT(worst, 0.4);  // or nothing has been measured
}

INSTANTIATE_TEST_SUITE_P(All, FunctionsTest, ::testing::ValuesIn(kFunctions),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace oriel
