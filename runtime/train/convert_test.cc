#include "runtime/train/convert.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "runtime/base/status_testing.h"

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

// A row of two, out of a matrix in f32, into a column of a bf16 box.
TEST(ConvertTest, BoxesOfOtherTypes) {
  const float source[] = {1.0f, 1.00390625f, 3.0f, 4.0f};  // 1 + 2^-8 is halfway
  uint16_t target[] = {7, 7, 7, 7};
  ORIEL_ASSERT_OK(
      ConvertBox({{0, 0}, {2, 2}}, DType::kF32, source, {{0, 1}, {2, 2}}, DType::kBF16, target));
  EXPECT_THAT(target, ElementsAre(0x3f80, 7, 0x4080, 7));
}

TEST(ConvertTest, FiniteStaysFinite) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> values = {-kLargest, kLargest,      -kInfinity,
                                     kInfinity, std::nanf(""), 7e4f};
  ORIEL_ASSERT_OK_AND_ASSIGN(auto narrow,
                             (Convert<float, uint16_t>(DType::kF32, values, DType::kBF16)));
  EXPECT_THAT(narrow, ElementsAre(0xff7f, 0x7f7f, 0xff80, 0x7f80, 0x7fc0, 0x4789));
  ORIEL_ASSERT_OK_AND_ASSIGN(auto half,
                             (Convert<float, uint16_t>(DType::kF32, values, DType::kF16)));
  EXPECT_THAT(half, ElementsAre(0xfbff, 0x7bff, 0xfc00, 0x7c00, 0x7e00, 0x7bff));
  ORIEL_ASSERT_OK_AND_ASSIGN(auto single,
                             (Convert<double, float>(DType::kF64, {-1e300, 1e39}, DType::kF32)));
  EXPECT_THAT(single, ElementsAre(-kLargest, kLargest));
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

}  // namespace
}  // namespace oriel::runtime
