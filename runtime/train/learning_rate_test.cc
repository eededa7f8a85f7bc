#include "runtime/train/learning_rate.h"

#include "gtest/gtest.h"

namespace oriel::runtime {
namespace {

plan::LearningRate Schedule(plan::LearningRate::Kind kind) {
  plan::LearningRate schedule;
  schedule.set_kind(kind);
  schedule.set_peak(0.1);
  schedule.set_warmup_steps(4);
  schedule.set_total_steps(12);
  schedule.set_final_ratio(0.2);
  return schedule;
}

TEST(LearningRateTest, WarmUpIsLinearFromZero) {
  for (auto kind :
       {plan::LearningRate::CONSTANT, plan::LearningRate::LINEAR, plan::LearningRate::COSINE}) {
    EXPECT_DOUBLE_EQ(LearningRateAt(Schedule(kind), 1), 0.025);
    EXPECT_DOUBLE_EQ(LearningRateAt(Schedule(kind), 3), 0.075);
    EXPECT_DOUBLE_EQ(LearningRateAt(Schedule(kind), 4), 0.1);
  }
}

TEST(LearningRateTest, Constant) {
  EXPECT_DOUBLE_EQ(LearningRateAt(Schedule(plan::LearningRate::CONSTANT), 5), 0.1);
  EXPECT_DOUBLE_EQ(LearningRateAt(Schedule(plan::LearningRate::CONSTANT), 500), 0.1);
}

TEST(LearningRateTest, Linear) {
  const plan::LearningRate schedule = Schedule(plan::LearningRate::LINEAR);
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 8), 0.06);
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 12), 0.02);
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 99), 0.02);
}

TEST(LearningRateTest, Cosine) {
  const plan::LearningRate schedule = Schedule(plan::LearningRate::COSINE);
  EXPECT_NEAR(LearningRateAt(schedule, 6), 0.02 + 0.08 * 0.8535533905932737, 1e-15);
  EXPECT_NEAR(LearningRateAt(schedule, 8), 0.06, 1e-15);
  EXPECT_NEAR(LearningRateAt(schedule, 12), 0.02, 1e-15);
  EXPECT_NEAR(LearningRateAt(schedule, 99), 0.02, 1e-15);
}

TEST(LearningRateTest, HeldAtThePeak) {
  plan::LearningRate schedule = Schedule(plan::LearningRate::LINEAR);
  schedule.set_hold_steps(4);
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 3), 0.075);
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 5), 0.1);
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 8), 0.1);
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 9), 0.08);
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 12), 0.02);
  schedule.set_hold_steps(8);  // up to the end
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 12), 0.1);
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 13), 0.02);
}

TEST(LearningRateTest, WithoutWarmUp) {
  plan::LearningRate schedule = Schedule(plan::LearningRate::LINEAR);
  schedule.set_warmup_steps(0);
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 1), 0.1 * (1 - 0.8 / 12));
}

TEST(LearningRateTest, WarmUpAsLongAsTheRun) {
  plan::LearningRate schedule = Schedule(plan::LearningRate::COSINE);
  schedule.set_warmup_steps(12);
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 12), 0.1);
  EXPECT_NEAR(LearningRateAt(schedule, 13), 0.02, 1e-15);
}

}  // namespace
}  // namespace oriel::runtime
