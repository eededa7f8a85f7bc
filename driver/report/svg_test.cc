#include "driver/report/svg.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace oriel::driver {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(SvgTest, MarkupIsEscaped) {
  EXPECT_EQ(escapeMarkup("<a href=\"x\" b='y'>&amp;"),
            "&lt;a href=&quot;x&quot; b=&#39;y&#39;&gt;&amp;amp;");
  EXPECT_EQ(escapeMarkup(std::string("a\0b\x1b[1m\n", 8)), "a b [1m\n");
  EXPECT_EQ(escapeMarkup("\xc3\xa9"), "\xc3\xa9");
}

TEST(SvgTest, LabelsAndTitlesAreEscaped) {
  Svg picture(10, 10, "a\"b");
  picture.label(0, 0, "</svg><script>");
  EXPECT_THAT(picture.text(), HasSubstr("aria-label=\"a&quot;b\""));
  EXPECT_THAT(picture.text(), Not(HasSubstr("<script>")));
}

TEST(SvgTest, Coordinates) {
  EXPECT_EQ(coordinate(12), "12");
  EXPECT_EQ(coordinate(12.26), "12.3");
  EXPECT_EQ(coordinate(-0.04), "0");
  EXPECT_EQ(coordinate(-0.5), "-0.5");
}

TEST(AxisTest, Places) {
  const Axis linear{0, 10, 100, 200};
  EXPECT_DOUBLE_EQ(linear.at(2.5), 125);
  const Axis upwards{1, 100, 200, 0, true};
  EXPECT_DOUBLE_EQ(upwards.at(10), 100);
}

TEST(AxisTest, TicksAreRound) {
  EXPECT_THAT(Axis({0, 0.9, 0, 1}).ticks(5),
              ElementsAre(0, DoubleNear(0.2, 1e-9), DoubleNear(0.4, 1e-9), DoubleNear(0.6, 1e-9),
                          DoubleNear(0.8, 1e-9)));
  EXPECT_THAT(Axis({7, 93, 0, 1}).ticks(5), ElementsAre(20, 40, 60, 80));
  EXPECT_THAT(Axis({0, 80, 0, 1}).ticks(8), ElementsAre(0, 10, 20, 30, 40, 50, 60, 70, 80));
}

TEST(AxisTest, TicksOfALogarithm) {
  EXPECT_THAT(Axis({0.9, 30, 0, 1, true}).ticks(8),
              ElementsAre(DoubleNear(1, 1e-9), DoubleNear(2, 1e-9), DoubleNear(5, 1e-9),
                          DoubleNear(10, 1e-9), DoubleNear(20, 1e-9)));
  const std::vector<double> wide = Axis({1e-6, 1e6, 0, 1, true}).ticks(6);
  EXPECT_LE(wide.size(), 7u);
  EXPECT_GE(wide.size(), 4u);
}

// Nothing between the ends.
TEST(AxisTest, NoRange) { EXPECT_THAT(Axis({3, 3, 0, 1}).ticks(5), ElementsAre(3)); }

TEST(ShownRowsTest, AllOrEvenlySpread) {
  EXPECT_THAT(shownRows(0, 4), IsEmpty());
  EXPECT_THAT(shownRows(4, 4), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(shownRows(9, 3), ElementsAre(0, 4, 8));
  EXPECT_THAT(shownRows(5, 4), ElementsAre(0, 1, 2, 4));
}

}  // namespace
}  // namespace oriel::driver
