#include "runtime/train/convert.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "runtime/base/status_testing.h"
#include "runtime/train/float16.h"

namespace oriel::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename From, typename To>
absl::StatusOr<std::vector<To>> Convert(DType from, std::vector<From> values, DType to) {
  std::vector<To> result(values.size());
  absl::Status status =
      ConvertElements(from, values.data(), to, result.data(), static_cast<int64_t>(values.size()));
  if (!status.ok()) return status;
  return result;
}

TEST(ConvertTest, BytesToFloatAreNotScaled) {
  ORIEL_ASSERT_OK_AND_ASSIGN(auto result,
                             (Convert<uint8_t, float>(DType::kU8, {0, 1, 255}, DType::kF32)));
  EXPECT_THAT(result, ElementsAre(0.0f, 1.0f, 255.0f));
}

TEST(ConvertTest, IntegersWiden) {
  ORIEL_ASSERT_OK_AND_ASSIGN(auto result,
                             (Convert<int32_t, int64_t>(DType::kI32, {-100, 7}, DType::kI64)));
  EXPECT_THAT(result, ElementsAre(-100, 7));
}

TEST(ConvertTest, IntegersNarrowOnlyIfTheyFit) {
  ORIEL_ASSERT_OK_AND_ASSIGN(auto result,
                             (Convert<int64_t, int32_t>(DType::kI64, {-100, 7}, DType::kI32)));
  EXPECT_THAT(result, ElementsAre(-100, 7));
  EXPECT_THAT((Convert<int64_t, int32_t>(DType::kI64, {1, int64_t{1} << 40}, DType::kI32)),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("1099511627776 at element 1")));
}

TEST(ConvertTest, BooleansAreZeroOrOne) {
  ORIEL_ASSERT_OK_AND_ASSIGN(auto result,
                             (Convert<uint8_t, int64_t>(DType::kBool, {0, 1, 7}, DType::kI64)));
  EXPECT_THAT(result, ElementsAre(0, 1, 1));
}

TEST(ConvertTest, WhatLosesValuesIsRefused) {
  EXPECT_FALSE(IsConvertible(DType::kF32, DType::kI64));
  EXPECT_FALSE(IsConvertible(DType::kF16, DType::kU8));
  EXPECT_FALSE(IsConvertible(DType::kU8, DType::kBool));
  EXPECT_TRUE(IsConvertible(DType::kF64, DType::kF32));
  EXPECT_TRUE(IsConvertible(DType::kI64, DType::kBF16));
  EXPECT_THAT((Convert<float, int64_t>(DType::kF32, {1}, DType::kI64)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("f32 to i64")));
}

// Every half survives the way through f32.
TEST(Float16Test, HalfRoundTrip) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const uint16_t half = static_cast<uint16_t>(bits);
    const float value = HalfToFloat(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(HalfToFloat(FloatToHalf(value))));
    } else {
      EXPECT_EQ(FloatToHalf(value), half) << value;
    }
  }
}

TEST(Float16Test, HalfRounding) {
  EXPECT_EQ(FloatToHalf(1.0f), 0x3c00);
  EXPECT_EQ(FloatToHalf(65504.0f), 0x7bff);
  EXPECT_EQ(FloatToHalf(65519.0f), 0x7bff);
  EXPECT_EQ(FloatToHalf(65520.0f), 0x7c00);                       // to infinity
  EXPECT_EQ(FloatToHalf(std::ldexp(1.0f, -24)), 0x0001);          // smallest subnormal
  EXPECT_EQ(FloatToHalf(std::ldexp(1.0f, -25)), 0x0000);          // tie to even
  EXPECT_EQ(FloatToHalf(1 + std::ldexp(1.0f, -11)), 0x3c00);      // tie to even
  EXPECT_EQ(FloatToHalf(1 + 3 * std::ldexp(1.0f, -11)), 0x3c02);  // tie to even
  EXPECT_EQ(FloatToHalf(-std::numeric_limits<float>::infinity()), 0xfc00);
}

TEST(Float16Test, BFloat16) {
  EXPECT_EQ(FloatToBFloat16(1.0f), 0x3f80);
  EXPECT_EQ(FloatToBFloat16(1 + std::ldexp(1.0f, -8)), 0x3f80);      // tie to even
  EXPECT_EQ(FloatToBFloat16(1 + 3 * std::ldexp(1.0f, -8)), 0x3f82);  // tie to even
  EXPECT_TRUE(std::isnan(BFloat16ToFloat(FloatToBFloat16(std::nanf("")))));
  EXPECT_EQ(BFloat16ToFloat(0x4049), 3.140625f);
}

}  // namespace
}  // namespace oriel::runtime
