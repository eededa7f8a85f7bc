#include "driver/report/step_chart.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace oriel::driver {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto kForward = static_cast<size_t>(StepPhase::kForward);
constexpr auto kBackward = static_cast<size_t>(StepPhase::kBackward);

// Forwards and backwards in turn, each of so many seconds, without gaps.
ProgramTimeline inTurn(int64_t microbatches, double seconds) {
  ProgramTimeline program;
  double now = 0;
  for (int64_t i = 0; i < microbatches; ++i) {
    for (const char* segment : {"forward.0", "backward.0"}) {
      program.runs.push_back({{segment, i}, now, now + seconds});
      now += seconds;
    }
  }
  return program;
}

TEST(StepChartTest, Phases) {
  EXPECT_EQ(phaseOfSegment("forward.12"), StepPhase::kForward);
  EXPECT_EQ(phaseOfSegment("backward"), StepPhase::kBackward);
  EXPECT_EQ(phaseOfSegment("backward_input.1"), StepPhase::kBackward);
  EXPECT_EQ(phaseOfSegment("backward_weight.1"), StepPhase::kBackwardWeight);
  EXPECT_EQ(phaseOfSegment("update"), StepPhase::kUpdate);
  EXPECT_EQ(phaseOfSegment("clip"), StepPhase::kOther);
}

TEST(StepChartTest, LongRunsAreBarsOfTheirOwn) {
  const std::vector<StepBar> bars = barsOf(inTurn(2, 3).runs, 1);
  ASSERT_EQ(bars.size(), 4u);
  EXPECT_DOUBLE_EQ(bars[2].start, 6);
  EXPECT_DOUBLE_EQ(bars[2].end, 9);
  EXPECT_EQ(bars[2].run->microbatch, 1);
  EXPECT_DOUBLE_EQ(bars[3].seconds[kBackward], 3);
}

TEST(StepChartTest, ShortRunsThatBeginInTimeAreOneBar) {
  const std::vector<StepBar> bars = barsOf(inTurn(3, 0.4).runs, 1);
  // Begin at 0, 0.4, 0.8 | 1.2, 1.6, 2.0.
  ASSERT_EQ(bars.size(), 2u);
  EXPECT_DOUBLE_EQ(bars[0].end, 1.2);
  EXPECT_FALSE(bars[0].run.has_value());
  EXPECT_DOUBLE_EQ(bars[0].seconds[kForward], 0.8);
  EXPECT_DOUBLE_EQ(bars[0].seconds[kBackward], 0.4);
}

TEST(StepChartTest, ALongRunEndsABar) {
  const std::vector<TimedSegment> runs = {
      {{"forward", 0}, 0, 0.1}, {{"forward", 1}, 0.1, 5}, {{"forward", 2}, 5, 5.1}};
  const std::vector<StepBar> bars = barsOf(runs, 1);
  ASSERT_EQ(bars.size(), 3u);
  EXPECT_TRUE(bars[0].run && bars[1].run && bars[2].run);
}

TEST(StepChartTest, NumbersWhereThereIsRoom) {
  StepTimeline step{{inTurn(4, 1)}, 8};
  EXPECT_THAT(stepChart(step, {"p0"}), HasSubstr(">3</text>"));
  EXPECT_THAT(stepChart(step, {"p0"}), Not(HasSubstr("drawn as one")));
}

TEST(StepChartTest, ARunThatWaitsIsSeveralBars) {
  const std::vector<StepBar> bars = barsOf({{{"forward", 0}, 0, 10, {{0, 2}, {5, 7}, {7, 8}}}}, 1);
  ASSERT_EQ(bars.size(), 2u);
  EXPECT_DOUBLE_EQ(bars[0].start, 2);
  EXPECT_DOUBLE_EQ(bars[0].end, 5);
  EXPECT_DOUBLE_EQ(bars[1].start, 8);
  EXPECT_DOUBLE_EQ(bars[1].seconds[kForward], 2);
}

// However many there are.
TEST(StepChartTest, ManyProgramsAndRunsStaySmall) {
  constexpr int64_t kMicrobatches = 5000, kPrograms = 100;
  StepTimeline step;
  step.programs.assign(kPrograms, inTurn(kMicrobatches, 1));
  step.seconds = 2 * kMicrobatches;
  std::vector<std::string> names;
  for (int64_t i = 0; i < kPrograms; ++i) names.push_back("p" + std::to_string(i));
  const std::string chart = stepChart(step, names);
  EXPECT_LT(chart.size(), 1u << 20);
  EXPECT_THAT(chart, HasSubstr("drawn as one"));
  EXPECT_THAT(chart, HasSubstr("Of 100 programs, 32 are shown"));
  EXPECT_THAT(chart, HasSubstr(">p99</text>"));
}

}  // namespace
}  // namespace oriel::driver
