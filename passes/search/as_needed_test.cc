#include "passes/search/as_needed.h"

#include "gtest/gtest.h"

namespace oriel {
namespace {

Evaluation evaluationOf(double seconds, double computing, double bytes) {
  Evaluation evaluation;
  evaluation.seconds = seconds;
  evaluation.programs.push_back({"all", "", 1, computing, 0, seconds - computing, {bytes}});
  return evaluation;
}

// Half of what can go has to, for a quarter of the time that all of it takes.
TEST(AsNeededTest, GrowsAsTheSquare) {
  const Evaluation none = evaluationOf(10, 10, 100), full = evaluationOf(14, 14, 60);
  EXPECT_DOUBLE_EQ(secondsAsNeeded(none, full, 10, 80), 11);
  EXPECT_DOUBLE_EQ(secondsAsNeeded(none, full, 10, 100), 10);
  EXPECT_DOUBLE_EQ(secondsAsNeeded(none, full, 10, 60), 14);
}

// 3 s of waiting, which the bound does not know, stay; `none` waits longer, with less overlap.
TEST(AsNeededTest, WaitsAsFullDoes) {
  const Evaluation none = evaluationOf(16, 10, 100), full = evaluationOf(17, 14, 60);
  EXPECT_DOUBLE_EQ(secondsAsNeeded(none, full, 10, 100), 13);
  EXPECT_DOUBLE_EQ(secondsAsNeeded(none, full, 10, 80), 14);
}

// What is computed again may hide what was waited for.
TEST(AsNeededTest, IsNoLessThanTheBound) {
  const Evaluation none = evaluationOf(13, 10, 100), full = evaluationOf(14, 14, 60);
  EXPECT_DOUBLE_EQ(secondsAsNeeded(none, full, 11, 100), 11);
}

}  // namespace
}  // namespace oriel
