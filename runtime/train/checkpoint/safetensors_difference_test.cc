#include "runtime/train/checkpoint/safetensors_difference.h"

#include <cmath>
#include <limits>

#include "runtime/base/status_testing.h"
#include "runtime/train/data_testing.h"

namespace oriel::runtime {
namespace {

using ::testing::HasSubstr;

class CompareTensorsTest : public ::testing::Test {
 protected:
  absl::StatusOr<TensorDifference> Compare(const std::vector<NamedTensor>& actual,
                                           const std::vector<NamedTensor>& expected) {
    ORIEL_RETURN_IF_ERROR(WriteSafetensors(folder_ / "actual.safetensors", actual));
    ORIEL_RETURN_IF_ERROR(WriteSafetensors(folder_ / "expected.safetensors", expected));
    ORIEL_ASSIGN_OR_RETURN(const SafetensorsFile a,
                           SafetensorsFile::Open(folder_ / "actual.safetensors"));
    ORIEL_ASSIGN_OR_RETURN(const SafetensorsFile b,
                           SafetensorsFile::Open(folder_ / "expected.safetensors"));
    return CompareTensors(a, b);
  }

  TempFolder folder_;
  const TensorSpec pair_ = {DType::kF32, {2}};
};

TEST_F(CompareTensorsTest, TheFurthestIsNamed) {
  const float a[] = {3, 4}, b[] = {3, 4.5}, c[] = {3.01f, 4};
  ORIEL_ASSERT_OK_AND_ASSIGN(const TensorDifference difference,
                             Compare({{"x", pair_, c}, {"y", pair_, b}, {"z", pair_, a}},
                                     {{"x", pair_, a}, {"y", pair_, a}, {"z", pair_, a}}));
  EXPECT_EQ(difference.tensor, "y");
  EXPECT_NEAR(difference.largest, 0.1, 1e-12);
  EXPECT_EQ(difference.compared, 3);
  EXPECT_EQ(difference.element_tensor, "y");
  EXPECT_EQ(difference.largest_element, 0.5);
}

TEST_F(CompareTensorsTest, WhatIsZeroButForRoundingIsNotCompared) {
  const float large[] = {3, 4}, rounding[] = {1e-8f, 0}, other[] = {-1e-8f, 0};
  ORIEL_ASSERT_OK_AND_ASSIGN(const TensorDifference difference,
                             Compare({{"x", pair_, large}, {"y", pair_, other}},
                                     {{"x", pair_, large}, {"y", pair_, rounding}}));
  EXPECT_EQ(difference.largest, 0);
  EXPECT_EQ(difference.compared, 1);
  EXPECT_EQ(difference.zeros, 1);
  EXPECT_EQ(difference.element_tensor, "y");
  EXPECT_NEAR(difference.largest_element, 2e-8, 1e-12);
}

TEST_F(CompareTensorsTest, NanIsFarAway) {
  const float good[] = {3, 4}, bad[] = {3, std::numeric_limits<float>::quiet_NaN()};
  ORIEL_ASSERT_OK_AND_ASSIGN(const TensorDifference difference,
                             Compare({{"x", pair_, bad}}, {{"x", pair_, good}}));
  EXPECT_TRUE(std::isinf(difference.largest));
  EXPECT_TRUE(std::isinf(difference.largest_element));
}

TEST_F(CompareTensorsTest, OtherTensors) {
  const float a[] = {3, 4};
  EXPECT_THAT(Compare({{"x", pair_, a}}, {{"x", pair_, a}, {"y", pair_, a}}).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("\"y\"")));
  EXPECT_THAT(Compare({{"x", pair_, a}, {"y", pair_, a}}, {{"x", pair_, a}}).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("\"y\"")));
  EXPECT_THAT(Compare({{"x", {DType::kF32, {1, 2}}, a}}, {{"x", pair_, a}}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("f32[1, 2]")));
}

}  // namespace
}  // namespace oriel::runtime
