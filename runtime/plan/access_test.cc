#include "runtime/plan/access.h"

#include "gtest/gtest.h"
#include "runtime/plan/plan_builder_testing.h"

namespace oriel::runtime {
namespace {

class BeforeUpdateTest : public ::testing::Test {
 protected:
  BeforeUpdateTest() : builder_(2) {
    builder_.Parameter("w", {DType::kF32, {1, 6}});
    gradient_ = builder_.Buffer(plan::STEP_GRADIENT, "w", {DType::kF32, {1, 6}});
    input_ = builder_.Buffer(plan::TEMPORARY, "input", {DType::kF32, {6}});
    builder_.program().add_schedule()->set_segment("backward");
    builder_.program().add_schedule()->set_segment("update");
    builder_.Segment("backward");
  }
  const plan::Buffer& buffer(int index) { return builder_.program().buffers(index); }
  const plan::Buffer& found() { return BeforeUpdate(builder_.program(), buffer(gradient_)); }

  PlanBuilder builder_;
  int gradient_ = 0, input_ = 0;
};

TEST_F(BeforeUpdateTest, WhatWasReducedInPlace) {
  builder_.Launch("exp", {input_}, {gradient_});
  const int reduced = builder_.Reduced(gradient_);
  builder_.AllReduce({gradient_}, {reduced});
  EXPECT_EQ(&found(), &buffer(reduced));
}

TEST_F(BeforeUpdateTest, WhatWasReshapedInPlaceIsTheGradientItself) {
  const int flat =
      builder_.Alias(plan::TEMPORARY, "flat", {DType::kF32, {6}}, buffer(gradient_).offset());
  builder_.Launch("exp", {input_}, {flat});
  EXPECT_EQ(&found(), &buffer(gradient_));
}

TEST_F(BeforeUpdateTest, WhatUpdateWritesComesLater) {
  builder_.Launch("exp", {input_}, {gradient_});
  const int reduced = builder_.Reduced(gradient_);
  builder_.Segment("update");
  builder_.AllReduce({gradient_}, {reduced});
  EXPECT_EQ(&found(), &buffer(gradient_));
}

}  // namespace
}  // namespace oriel::runtime
