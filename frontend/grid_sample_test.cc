// GridSample; ONNX's node tests have its values.
#include "frontend/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace oriel {
namespace {

using ::testing::HasSubstr;

// Of x at positions [shape] that the model writes down.
std::string sampled(const std::string& x, const std::string& shape, const std::string& positions,
                    const std::string& attributes = "") {
  return testing::opsOf(testing::modelText(
      "g (float[" + x + "] x) => (float[] y) { g = Constant<value = float[" + shape + "] {" +
          positions + "}>()\n y = GridSample" + attributes + "(x, g) }",
      20));
}

TEST(GridSample, IsAProduct) {
  EXPECT_EQ(sampled("1, 3, 2, 2", "1, 1, 2, 2", "0.0, 0.0, 0.5, -0.5"), "reshape linear reshape");
}

// 2 / 3 is at 2.5 in f32, and that goes to the even place, 2; in f64 it is a little beyond.
TEST(GridSample, RoundsAsPyTorchDoes) {
  const testing::Imported imported = testing::importText(testing::modelText(
      "g (float[1, 1, 1, 4] x) => (float[] y) { p = Constant<value = float[1, 1, 1, 2] {0.6666667, "
      "0.0}>()\n y = GridSample<mode = \"nearest\", align_corners = 1>(x, p) }",
      20));
  EXPECT_THAT(imported.ir, HasSubstr("[[0.000000e+00, 0.000000e+00, 1.000000e+00, 0.000000e+00]]"));
}

TEST(GridSample, IsAProductWherePositionsAreThoseOfAllSamples) {
  EXPECT_EQ(sampled("2, 3, 2, 2", "2, 1, 1, 2", "0.0, 1.0, 0.0, 1.0"), "reshape linear reshape");
  EXPECT_THAT(sampled("2, 3, 2, 2", "2, 1, 1, 2", "0.0, 1.0, 0.0, 0.5"), HasSubstr("gather"));
}

// Of x [1, 3, 2, 2] at positions that are an input.
std::string sampledAtInput(const std::string& attributes) {
  return testing::opsOf(testing::modelText(
      "g (float[1, 3, 2, 2] x, float[1, 1, 1, 2] g) => (float[] y) { y = GridSample" + attributes +
          "(x, g) }",
      20));
}

TEST(GridSample, PicksFourRowsAtPositionsThatAreComputed) {
  EXPECT_THAT(sampledAtInput(""), ::testing::ContainsRegex("(gather.*){4}"));
  EXPECT_THAT(sampledAtInput("<padding_mode = \"border\">"), HasSubstr("gather"));
  EXPECT_THAT(sampledAtInput("<mode = \"nearest\">"), HasSubstr("not for \"nearest\""));
  EXPECT_THAT(sampledAtInput("<padding_mode = \"reflection\">"), HasSubstr("with \"reflection\""));
}

TEST(GridSample, RefusesWhatItCannotPlace) {
  EXPECT_THAT(sampled("1, 3, 2, 2", "1, 1, 1, 2", "1.0e30, 0.0"),
              HasSubstr("samples the position"));
  EXPECT_THAT(sampled("1, 3, 2, 2, 2", "1, 1, 1, 1, 3", "0.0, 0.0, 0.0"),
              HasSubstr("it must be [samples, channels, height, width]"));
  EXPECT_THAT(sampled("1, 3, 2, 2", "1, 1, 1, 2", "0.0, 0.0", "<padding_mode = \"mirror\">"),
              HasSubstr("padding_mode \"mirror\""));
}

}  // namespace
}  // namespace oriel
