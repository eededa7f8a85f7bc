#include <cmath>
#include <limits>

#include "kernels/elementwise/half.h"
#include "kernels/testing.h"

namespace oriel::kernels {
namespace {

using testing::ExpectClose;
using testing::RunKernel;
using testing::Tensor;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor Cast(const Tensor& x, DType to) { return RunKernel("cast", {x}, {{to, x.shape()}})[0]; }

const DType kAll[] = {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI64,
                      DType::kI32, DType::kI8,  DType::kU8,  DType::kBool};

TEST(CastTest, SmallWholeNumbersSurviveEveryPair) {
  for (DType from : kAll) {
    for (DType to : kAll) {
      const Tensor x = Tensor::Random(from, {40, 1037}, 1, 0, 2);
      std::vector<double> expected;
      for (double v : x.values()) {
        const bool whole =
            to != DType::kF32 && to != DType::kF64 && to != DType::kF16 && to != DType::kBF16;
        if (to == DType::kBool) {
          expected.push_back(v != 0);
        } else if (whole) {
          expected.push_back(std::trunc(v));
        } else if (to == DType::kF16) {
          expected.push_back(HalfToFloat(FloatToHalf(static_cast<float>(v))));
        } else if (to == DType::kBF16) {
          expected.push_back(BFloatToFloat(FloatToBFloat(static_cast<float>(v))));
        } else {
          expected.push_back(v);
        }
      }
      ExpectClose(Cast(x, to), expected);
    }
  }
}

TEST(CastTest, FloatsTruncateTowardsZero) {
  const Tensor x({DType::kF32, {4}}, {1.9, -1.9, 0.5, -0.5});
  ExpectClose(Cast(x, DType::kI64), {1, -1, 0, 0});
}

TEST(CastTest, FloatsOutOfRangeSaturate) {
  const Tensor x({DType::kF32, {4}}, {1e30, -1e30, kNaN, kInfinity});
  ExpectClose(Cast(x, DType::kI32), {2147483647, -2147483648.0, 0, 2147483647});
  ExpectClose(Cast(x, DType::kU8), {255, 0, 0, 255});
}

TEST(CastTest, AnythingNonZeroIsTrue) {
  ExpectClose(Cast(Tensor({DType::kF32, {4}}, {0, -0.0, 0.1, kNaN}), DType::kBool), {0, 0, 1, 1});
  ExpectClose(Cast(Tensor({DType::kF16, {3}}, {0, -0.0, 1}), DType::kBool), {0, 0, 1});
}

TEST(HalfTest, EveryHalfSurvivesTheRoundTrip) {
  for (int bits = 0; bits < 0x10000; ++bits) {
    const float value = HalfToFloat(static_cast<uint16_t>(bits));
    if (std::isnan(value)) {
      EXPECT_GT(bits & 0x7fff, 0x7c00);
      EXPECT_GT(FloatToHalf(value) & 0x7fff, 0x7c00);
    } else {
      ASSERT_EQ(FloatToHalf(value), bits);
    }
  }
  EXPECT_EQ(HalfToFloat(0x3c00), 1.0f);
  EXPECT_EQ(HalfToFloat(0x0001), std::ldexp(1.0f, -24));
  EXPECT_EQ(HalfToFloat(0x7bff), 65504.0f);
}

TEST(HalfTest, RoundsToNearestEven) {
  EXPECT_EQ(FloatToHalf(2049.0f), FloatToHalf(2048.0f));  // tie, to even
  EXPECT_EQ(FloatToHalf(2051.0f), FloatToHalf(2052.0f));
  EXPECT_EQ(FloatToHalf(65519.0f), 0x7bff);
  EXPECT_EQ(FloatToHalf(65520.0f), 0x7c00);
  EXPECT_EQ(FloatToHalf(std::ldexp(1.0f, -25)), 0);  // tie, to even
  EXPECT_EQ(FloatToHalf(std::ldexp(1.5f, -25)), 1);
  EXPECT_EQ(FloatToHalf(-1e30f), 0xfc00);
}

TEST(HalfTest, BFloatRoundsToNearestEven) {
  EXPECT_EQ(FloatToBFloat(1.0f), 0x3f80);
  EXPECT_EQ(FloatToBFloat(1.00390625f), 0x3f80);  // 1 + 2^-8: tie, to even
  EXPECT_EQ(FloatToBFloat(1.01171875f), 0x3f82);  // 1 + 3 2^-8: tie, to even
  EXPECT_EQ(FloatToBFloat(3.4e38f), 0x7f80);      // rounds to infinity
  EXPECT_TRUE(std::isnan(BFloatToFloat(FloatToBFloat(std::nanf("")))));
}

}  // namespace
}  // namespace oriel::kernels
