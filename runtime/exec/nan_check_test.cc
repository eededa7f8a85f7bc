#include "runtime/exec/nan_check.h"

#include <cmath>
#include <limits>

#include "runtime/base/float16.h"
#include "runtime/base/status_testing.h"
#include "runtime/exec/executor_testing.h"
#include "runtime/plan/plan_builder_testing.h"

namespace oriel::runtime {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(FindNanTest, EveryTypeOfFloats) {
  const float f32[] = {1, -kInfinity, kInfinity, -0.0f, -kNan, kNan};
  EXPECT_EQ(FindNan(DType::kF32, f32, 6), 4);
  EXPECT_EQ(FindNan(DType::kF32, f32, 4), std::nullopt);
  const double f64[] = {kInfinity, std::numeric_limits<double>::max(), kNan};
  EXPECT_EQ(FindNan(DType::kF64, f64, 3), 2);
  EXPECT_EQ(FindNan(DType::kF64, f64, 2), std::nullopt);
  const uint16_t bf16[] = {FloatToBFloat16(-kInfinity), FloatToBFloat16(3e38f),
                           FloatToBFloat16(kNan)};
  EXPECT_EQ(FindNan(DType::kBF16, bf16, 3), 2);
  const uint16_t f16[] = {0x7c00, 0xfc00, 0x7bff, 0xfc01};
  EXPECT_EQ(FindNan(DType::kF16, f16, 4), 3);
  const int64_t i64[] = {-1};  // all bits are set
  EXPECT_EQ(FindNan(DType::kI64, i64, 1), std::nullopt);
}

// c = a * b, then d = c + b: the first that has none to multiply is named.
plan::Plan ProductPlan() {
  PlanBuilder builder(1);
  const int a = builder.Buffer(plan::INPUT, "a", {DType::kF32, {4}});
  const int b = builder.Buffer(plan::INPUT, "b", {DType::kF32, {4}});
  const int c = builder.Buffer(plan::OUTPUT, "c", {DType::kF32, {4}});
  const int d = builder.Buffer(plan::OUTPUT, "d", {DType::kF32, {4}});
  builder.Segment("forward");
  builder.Launch("test_multiply", {a, b}, {c}, "/model/Mul");
  builder.Launch("test_add", {c, b}, {d}, "/model/Add");
  return builder.plan();
}

TEST(NanCheckTest, FirstOpWithANanIsNamed) {
  const plan::Plan plan = ProductPlan();
  ExecutorOptions options = TestOptions();
  options.check_nan = true;
  ORIEL_ASSERT_OK_AND_ASSIGN(auto executor, Executor::Create(plan, 0, nullptr, options));
  Floats(*executor, plan::INPUT, "a")[2] = kInfinity;
  Floats(*executor, plan::INPUT, "b")[2] = 1;
  ORIEL_EXPECT_OK(executor->Run("forward"));  // infinity is a number of its own
  Floats(*executor, plan::INPUT, "b")[2] = 0;
  EXPECT_THAT(executor->Run("forward"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "rank 0, segment forward, instruction 0 (test_multiply): the result is the "
                       "first with a NaN: element 2 of f32[4] [from onnx node /model/Mul]"));

  ORIEL_ASSERT_OK_AND_ASSIGN(executor, Executor::Create(plan, 0, nullptr, TestOptions()));
  Floats(*executor, plan::INPUT, "a")[2] = kInfinity;
  ORIEL_EXPECT_OK(executor->Run("forward"));
  EXPECT_TRUE(std::isnan(Floats(*executor, plan::OUTPUT, "c")[2]));
}

}  // namespace
}  // namespace oriel::runtime
