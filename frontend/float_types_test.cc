#include "frontend/float_types.h"

#include "frontend/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace oriel {
namespace {

using ::testing::HasSubstr;
using testing::Imported;
using testing::importText;
using testing::modelText;
using ::testing::Not;

// Inputs, parameters, constants, casts and outputs; a norm's own casts are gone.
TEST(FloatTypes, ModelsOf16BitsAreF32) {
  for (const std::string type : {"float16", "bfloat16"}) {
    const bool isHalf = type == "float16";
    const std::string code = isHalf ? "10" : "16", half = isHalf ? "14336" : "16128";
    Imported imported = importText(
        modelText("g (" + type + "[2] x) => (" + type + "[2] y) <" + type + "[2] w = {1, 2}> {" +
                  "  wide = Cast<to = 1>(x)\n square = Mul(wide, wide)\n" +
                  "  back = Cast<to = " + code + ">(square)\n half = Constant<value = " + type +
                  "[1] {" + half + "}>()\n" + "  scaled = Mul(back, half)\n y = Mul(scaled, w) }"));
    EXPECT_THAT(imported.errors,
                HasSubstr("(1 cast, 1 constant, 1 input, 1 parameter) is computed in f32"))
        << type;
    EXPECT_EQ(imported.ops, "mul mul mul") << type;
    EXPECT_THAT(imported.ir, Not(HasSubstr("f16"))) << type;
  }
}

// What masks and limits are made of; all else has the same value. (Numbers of 16 bits are written
// by their bits: the lowest ones, and 0.5.)
TEST(FloatTypes, TheLowestNumberIsThatOfF32) {
  for (const std::string lowest : {"float16[1] {64511}", "bfloat16[1] {65407}"}) {
    Imported imported =
        importText(modelText("g (float[2] x) => (float[2] y) { low = Constant<value = " + lowest +
                             ">()\n" + " wide = Cast<to = 1>(low)\n y = Add(x, wide) }"));
    EXPECT_THAT(imported.ir, HasSubstr("dense<-3.40282347E+38>")) << lowest;
  }
  Imported imported = importText(
      modelText("g (float[2] x) => (float[2] y) { number = Constant<value = float16[1] {14336}>()\n"
                " wide = Cast<to = 1>(number)\n y = Add(x, wide) }"));
  EXPECT_THAT(imported.ir, HasSubstr("dense<5.000000e-01>"));
}

}  // namespace
}  // namespace oriel
