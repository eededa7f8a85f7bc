// What becomes of computations on the rows that a mask chooses.
#include "frontend/masked_rows.h"

#include "frontend/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace oriel {
namespace {

using ::testing::HasSubstr;
using testing::modelText;
using ::testing::Not;
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
  // Where the mask is false, ones.
  const std::string safe = "reshape broadcast select ";
  EXPECT_EQ(opsOf(maskedRows("r = Neg(rows)")), safe + "neg select");
  EXPECT_EQ(opsOf(maskedRows("r = Add(rows, d)")), safe + "masked_scatter add select");
  EXPECT_EQ(opsOf(maskedRows("r = Add(rows, d)", "1, 3")), safe + "add select");
  EXPECT_EQ(opsOf(maskedRows("t = Gemm<transB = 1>(rows, w, b)\n r = Tanh(t)")),
            safe + "transpose linear add tanh select");
  EXPECT_EQ(opsOf(maskedRows("s = Mul(rows, rows)\n v = ReduceMean(s, last)\n r = Mul(rows, v)")),
            safe + "mul reduce_mean mul select");
  EXPECT_EQ(opsOf(maskedRows("r = CastLike(rows, d)")), safe + "select");
}

// Rows of several samples in one more dimension are rows all the same.
TEST(MaskedRows, LeadingDimensionsOfOne) {
  EXPECT_EQ(opsOf(maskedRows("r = Add(rows, d)", "1, 4, 3")),
            opsOf(maskedRows("r = Add(rows, d)")));
}

// A norm's scale that is another for each row.
TEST(MaskedRows, OperandsOfNormsMayBeRows) {
  EXPECT_THAT(opsOf(maskedRows("r = LayerNormalization<axis = -1>(rows, d)", "4, 3")),
              HasSubstr("masked_scatter"));
}

TEST(MaskedRows, OfAMaskThatIsMadeTwice) {
  std::string text = maskedRows("r = Neg(rows)");
  text.replace(text.find("NonZero(m)"), 10, "NonZero(k)\n k = Not(m)");
  text.replace(text.find("GatherND(x, indices)"), 20,
               "GatherND(x, others)\n l = Not(m)\n p = NonZero(l)\n others = Transpose(p)");
  EXPECT_EQ(opsOf(text), "not reshape broadcast select neg select");
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

// As the newer exporter puts them back: flattened, by a mask of all elements. `m` is of 2 x 2.
std::string putBack(const std::string& mask) {
  return modelText(R"(
    g (float[2, 2, 2, 3] x, bool[2, 2] m) => (float[2, 2, 2, 3] y)
    <int64[1] zero = {0}, int64[1] one = {1}, int64[2] behind = {-2, -1}, int64[1] last = {-1}> {
      shape = Shape(x)
      p = NonZero(m)
      i = Transpose(p)
      rows = GatherND(x, i)
      f = Neg(rows)
      )" + mask + R"(
      wide = Expand(u, shape)
      wp = NonZero(wide)
      wi = Transpose(wp)
      flat = Reshape(f, last)
      n = Shape(wi)
      count = Gather(n, zero)
      r = Slice(flat, zero, count, zero)
      y = ScatterND(x, wi, r)
    })");
}

TEST(MaskedRows, GoBackByTheirMask) {
  EXPECT_EQ(opsOf(putBack("u = Unsqueeze(m, behind)")), "reshape broadcast select neg select");
}

// Of the same sizes, but of the last dimensions but one, or the first and the third.
TEST(MaskedRows, AMaskOfOtherDimensions) {
  EXPECT_THAT(opsOf(putBack("k = Unsqueeze(m, zero)\n u = Unsqueeze(k, last)")),
              HasSubstr("goes back by another mask"));
  EXPECT_THAT(opsOf(putBack("k = Unsqueeze(m, one)\n u = Unsqueeze(k, last)")),
              HasSubstr("goes back by another mask"));
}

// Element by element, as `x.masked_scatter(wide, x[wide] + d.reshape(-1))` has it.
std::string flatRows(const std::string& wide, const std::string& f) {
  return modelText(R"(
    g (float[2, 4, 3] x, bool[2, 4] m, float[5, 3] d, float[15] e) => (float[2, 4, 3] y)
    <int64[1] zero = {0}, int64[1] last = {-1}, float two = {2}> {
      shape = Shape(x)
      u = Unsqueeze(m, last)
      all = Expand(u, shape)
      p = NonZero(all)
      i = Transpose(p)
      )" + wide + R"(
      wp = NonZero(wide)
      wi = Transpose(wp)
      rows = GatherND(x, wi)
      flat = Reshape(d, last)
      )" + f + R"(
      y = ScatterND(x, i, r)
    })");
}

TEST(MaskedRows, ElementByElement) {
  const std::string wide = "wide = Expand(u, shape)";
  EXPECT_THAT(opsOf(flatRows(wide, "r = Add(rows, flat)")), HasSubstr("masked_scatter add select"));
  EXPECT_THAT(opsOf(flatRows(wide, "r = Mul(rows, two)")), HasSubstr("mul select"));
  for (const char* f : {"r = Add(rows, e)", "r = Softmax<axis = -1>(rows)"}) {
    EXPECT_THAT(opsOf(flatRows(wide, f)), HasSubstr("NonZero")) << f;
  }
  // As many elements, but of other rows.
  std::string text = flatRows(wide, "r = Add(rows, flat)");
  text.replace(text.find("float[5, 3] d"), 13, "float[15, 1] d");
  EXPECT_THAT(opsOf(text), HasSubstr("are not those of rows"));
  // Which chooses the first element of each row.
  EXPECT_THAT(opsOf(flatRows("wide = Unsqueeze(m, last)", "r = Add(rows, flat)")),
              HasSubstr("not the mask of its rows for all of them"));
}

TEST(MaskedRows, OfAMaskThatIsUnsqueezedAndSqueezed) {
  std::string text = maskedRows("r = Neg(rows)");
  text.replace(text.find("NonZero(m)"), 10,
               "NonZero(k)\n u = Unsqueeze(m, zero)\n k = Squeeze(u, zero)");
  text.replace(text.find("GatherND(x, indices)"), 20,
               "GatherND(x, others)\n p = NonZero(m)\n others = Transpose(p)");
  EXPECT_THAT(opsOf(text), HasSubstr("neg select"));
  text.replace(text.find("Squeeze(u, zero)"), 16, "Squeeze(u, last)");
  EXPECT_THAT(opsOf(text), Not(HasSubstr("neg select")));
}

TEST(MaskedRows, OfDifferentRanks) {
  EXPECT_THAT(opsOf(maskedRows("j = Unsqueeze(x, last)\n q = GatherND(j, indices)\n "
                               "r = Add(rows, q)")),
              HasSubstr("different numbers of dimensions"));
}

TEST(MaskedRows, OfAnotherTensor) {
  std::string text = maskedRows("r = Neg(rows)");
  text.replace(text.find("GatherND(x, indices)"), 20,
               "GatherND(z, indices)\n z = Unsqueeze(x, last)");
  EXPECT_THAT(opsOf(text), HasSubstr("do not go back into"));
}

// Recursion is bounded; an ordinary merge needs none.
TEST(MaskedRows, LongChains) {
  auto chainOf = [](const std::string& first) {
    std::string chain = "c0 = Neg(" + first + ")\n";
    for (int i = 1; i < 20000; ++i) {
      chain += "c" + std::to_string(i) + " = Neg(c" + std::to_string(i - 1) + ")\n";
    }
    return chain + "r = Neg(c19999)";
  };
  EXPECT_THAT(opsOf(maskedRows(chainOf("rows"))), HasSubstr("NonZero"));
  EXPECT_THAT(opsOf(maskedRows(chainOf("d"), "8, 3")), HasSubstr("masked_scatter"));
}

// Masks are compared in bounded time.
TEST(MaskedRows, LongMasks) {
  auto mask = [](const std::string& name) {
    std::string lines = name + "0 = Not(m)\n", last = name + "0";
    for (int depth = 1; depth < 60; ++depth) {
      const std::string next = name + std::to_string(depth);
      lines += next + " = And(" + last + ", " + last + ")\n";
      last = next;
    }
    return lines;
  };
  std::string text = maskedRows("r = Neg(rows)");
  text.replace(
      text.find("positions = NonZero(m)"), 22,
      mask("k") + mask("l") + "positions = NonZero(k59)\n lp = NonZero(l59)\n li = Transpose(lp)");
  text.replace(text.find("GatherND(x, indices)"), 20, "GatherND(x, li)");
  EXPECT_THAT(opsOf(text), HasSubstr("NonZero"));
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
