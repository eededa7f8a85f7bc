// What becomes of computations on the rows that a mask chooses.
#include "frontend/masked_rows.h"

#include "frontend/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace oriel {
namespace {

using ::testing::HasSubstr;
using testing::importText;
using testing::modelText;
using testing::opsOf;

// x[mask] = f(x[mask], d), on all rows.
std::string maskedRows(const std::string& f, const std::string& d = "5, 3") {
  return modelText(R"(
    g (float[2, 4, 3] x, bool[2, 4] m, float[)" +
                   d + R"(] d) => (float[2, 4, 3] y)
    <float[3, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}, float[3] b = {1, 2, 3}, int64[1] last = {-1},
     int64[1] zero = {0}> {
      positions = NonZero(m)
      indices = Transpose(positions)
      rows = GatherND(x, indices)
      )" + f + R"(
      y = ScatterND(x, indices, r)
    })");
}

TEST(MaskedRows, AreComputedOnAllRows) {
  EXPECT_EQ(opsOf(maskedRows("r = Add(rows, d)")), "reshape broadcast masked_scatter add select");
  EXPECT_EQ(opsOf(maskedRows("r = Add(rows, d)", "1, 3")), "add reshape broadcast select");
  EXPECT_EQ(opsOf(maskedRows("t = Gemm<transB = 1>(rows, w, b)\n r = Tanh(t)")),
            "transpose linear add tanh reshape broadcast select");
  EXPECT_EQ(opsOf(maskedRows("s = Mul(rows, rows)\n v = ReduceMean(s, last)\n r = Mul(rows, v)")),
            "mul reduce_mean mul reshape broadcast select");
}

// What is at rows that nobody chose must have a derivative.
TEST(MaskedRows, NoRowIsDividedByNothing) {
  EXPECT_THAT(importText(maskedRows("r = Div(rows, d)")).ir, HasSubstr("dense<1.000000e+00>"));
}

TEST(MaskedRows, OfAMaskThatIsMadeTwice) {
  std::string text = maskedRows("r = Neg(rows)");
  text.replace(text.find("NonZero(m)"), 10, "NonZero(k)\n k = Not(m)");
  text.replace(text.find("GatherND(x, indices)"), 20,
               "GatherND(x, others)\n l = Not(m)\n p = NonZero(l)\n others = Transpose(p)");
  EXPECT_EQ(opsOf(text), "not neg reshape broadcast select");
  text.replace(text.find("l = Not(m)"), 10, "l = Not(k)");
  EXPECT_THAT(opsOf(text), HasSubstr("NonZero"));
}

TEST(MaskedRows, OnlyRowByRow) {
  for (const char* f : {"r = ReduceSum(rows, zero)",  // over the rows
                        "r = Softmax<axis = 0>(rows)", "r = MatMul(w, rows)",
                        "r = MatMul(rows, d)",  // which is no weight
                        "n = Shape(rows)\n k = Cast<to = 1>(n)\n r = Mul(rows, k)",
                        "r = Slice(rows, zero, last)"}) {
    EXPECT_THAT(opsOf(maskedRows(f, "3, 3")), HasSubstr("NonZero")) << f;
  }
  EXPECT_THAT(opsOf(maskedRows("r = Add(rows, d)", "5, 2")), HasSubstr("failed"));
  EXPECT_THAT(opsOf(maskedRows("r = Add(rows, d)", "2, 5, 3")), HasSubstr("does not fit the rows"));
}

TEST(MaskedRows, AreRows) {
  EXPECT_THAT(opsOf(modelText(R"(g (float[2, 4] x, bool[2, 4] m) => (float[2, 4] y) {
      positions = NonZero(m)
      indices = Transpose(positions)
      rows = GatherND(x, indices)
      r = Exp(rows)
      y = ScatterND(x, indices, r)
    })")),
              HasSubstr("does not choose rows of a tensor of 2 dimensions [2, 4]"));
}

}  // namespace
}  // namespace oriel
