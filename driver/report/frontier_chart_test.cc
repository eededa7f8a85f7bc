#include "driver/report/frontier_chart.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace oriel::driver {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TriedStrategy tried(double seconds, double bytes, bool fits = true) {
  TriedStrategy strategy;
  strategy.evaluation.seconds = seconds;
  strategy.evaluation.programs.resize(1);
  strategy.evaluation.programs[0].bytes = {bytes};
  strategy.fits = fits;
  return strategy;
}

TEST(FrontierChartTest, FrontierIsWhatNothingBeats) {
  // The third is slower and larger than the second; the last does not fit.
  EXPECT_THAT(
      frontierOf({tried(1, 90), tried(2, 50), tried(3, 60), tried(4, 10), tried(0.5, 200, false)}),
      ElementsAre(0, 1, 3));
}

TEST(FrontierChartTest, EqualOnesCountOnce) {
  EXPECT_THAT(frontierOf({tried(1, 90), tried(1, 90), tried(1, 80)}), ElementsAre(2));
}

TEST(FrontierChartTest, OneStrategy) {
  const std::string chart = frontierChart({tried(1, 90)}, 100);
  EXPECT_THAT(chart, HasSubstr("class=\"mark best\""));
  EXPECT_THAT(chart, HasSubstr("a device has 100 bytes"));
  EXPECT_THAT(chart, Not(HasSubstr("nan")));
}

// A limit that is far from all of them would press them together.
TEST(FrontierChartTest, AFarLimitIsNotDrawn) {
  EXPECT_THAT(frontierChart({tried(1, 90), tried(2, 80)}, 1e9), Not(HasSubstr("a device has")));
}

}  // namespace
}  // namespace oriel::driver
