#include "kernels/common/vector_math.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace oriel::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// The largest relative error of `approximate` against `exact` over evenly spaced arguments.
template <typename F, typename G>
double WorstError(const F& approximate, const G& exact, float low, float high) {
  constexpr int kSteps = 400000;
  double worst = 0;
  for (int i = 0; i <= kSteps; ++i) {
    const float x = low + (high - low) * static_cast<float>(i) / kSteps;
    const double expected = exact(static_cast<double>(x));
    if (expected == 0) continue;
    worst = std::max(worst, std::fabs(approximate(x) - expected) / std::fabs(expected));
  }
  return worst;
}

TEST(VectorMathTest, Exp) {
  const auto exact = [](double x) { return std::exp(x); };
  EXPECT_LT(WorstError([](float x) { return Exp(x); }, exact, -86.8f, 88.72f), 3e-7);
  EXPECT_LT(WorstError([](float x) { return Exp(x); }, exact, -1, 1), 2e-7);
  EXPECT_EQ(Exp(0.0f), 1.0f);
  EXPECT_EQ(Exp(-kInfinity), 0.0f);
  EXPECT_EQ(Exp(-1e30f), 0.0f);
  EXPECT_EQ(Exp(-100.0f), 0.0f);
  EXPECT_EQ(Exp(1e30f), kInfinity);
  EXPECT_LT(Exp(88.72283f), kInfinity);
  EXPECT_EQ(Exp(kInfinity), kInfinity);
  EXPECT_EQ(Exp(100.0f), kInfinity);
  EXPECT_TRUE(std::isnan(Exp(kNaN)));
}

TEST(VectorMathTest, Sigmoid) {
  const auto exact = [](double x) { return 1 / (1 + std::exp(-x)); };
  EXPECT_LT(WorstError([](float x) { return Sigmoid(x); }, exact, -80, 80), 3e-7);
  EXPECT_EQ(Sigmoid(-kInfinity), 0.0f);
  EXPECT_EQ(Sigmoid(kInfinity), 1.0f);
  EXPECT_TRUE(std::isnan(Sigmoid(kNaN)));
}

TEST(VectorMathTest, Tanh) {
  const auto exact = [](double x) { return std::tanh(x); };
  EXPECT_LT(WorstError([](float x) { return Tanh(x); }, exact, -10, 10), 3e-7);
  EXPECT_LT(WorstError([](float x) { return Tanh(x); }, exact, -1e-3f, 1e-3f), 2e-7);
  EXPECT_EQ(Tanh(-kInfinity), -1.0f);
  EXPECT_EQ(Tanh(kInfinity), 1.0f);
  EXPECT_TRUE(std::isnan(Tanh(kNaN)));
}

TEST(VectorMathTest, Erf) {
  const auto exact = [](double x) { return std::erf(x); };
  EXPECT_LT(WorstError([](float x) { return Erf(x); }, exact, -6, 6), 3e-7);
  EXPECT_LT(WorstError([](float x) { return Erf(x); }, exact, -1e-3f, 1e-3f), 2e-7);
  EXPECT_EQ(Erf(-kInfinity), -1.0f);
  EXPECT_EQ(Erf(kInfinity), 1.0f);
  EXPECT_TRUE(std::isnan(Erf(kNaN)));
}

TEST(VectorMathTest, LogOfSum) {
  for (double x = 1e-3; x < 1e12; x *= 1.0009) {
    ASSERT_NEAR(LogOfSum(x), std::log(x), 1e-13 * std::max(1.0, std::fabs(std::log(x)))) << x;
  }
  EXPECT_EQ(LogOfSum(1.0), 0.0);
}

TEST(VectorMathTest, DoubleSigmoidKeepsSmallValues) {
  EXPECT_NEAR(Sigmoid(-40.0) / std::exp(-40.0), 1, 1e-15);
  EXPECT_EQ(Sigmoid(800.0), 1.0);
}

}  // namespace
}  // namespace oriel::kernels
