// Importers of slices, gathers and scatters. Where operands are constants the result folds, so the
// value shows that the import means what ONNX says; elsewhere the ops that were made do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/testing.h"

namespace oriel {
namespace {

using ::testing::HasSubstr;
using testing::irOfBody;
using testing::opsOfBody;
using testing::valueOf;

TEST(Indexing, SlicesCountFromTheEndAndBackwards) {
  EXPECT_EQ(valueOf("e = Constant<value_ints = [9223372036854775807]>()\n y = Slice(i, last, e)"),
            "dense<6> : tensor<1xi64>");
  EXPECT_EQ(valueOf("e = Constant<value_ints = [-1]>()\n y = Slice(n, zero, e, one, one)"),
            "dense<[[1, 2], [4, 5]]> : tensor<2x2xi64>");
  EXPECT_EQ(valueOf("e = Constant<value_ints = [-9223372036854775808]>()\n"
                    "y = Slice(i, last, e, zero, last)"),
            "dense<[6, 5, 4, 3, 2, 1]> : tensor<6xi64>");
  EXPECT_EQ(valueOf("y = Slice(i, two, zero, zero, last)"), "dense<[3, 2]> : tensor<2xi64>");
  EXPECT_THAT(valueOf("y = Slice(i, zero, two, zero, zero)"), HasSubstr("is 0"));
}

TEST(Indexing, Gathers) {
  EXPECT_EQ(valueOf("y = Gather<axis = 1>(n, last)"), "dense<[[3], [6]]> : tensor<2x1xi64>");
  EXPECT_EQ(valueOf("s = Constant<value_ints = [1, 2]>()\n j = Constant<value_ints = [-1, 0]>()\n"
                    "at = Reshape(j, s)\n y = GatherElements<axis = 1>(n, at)"),
            "dense<[[3, 1]]> : tensor<1x2xi64>");
  EXPECT_EQ(
      valueOf("s = Constant<value_ints = [2, 2]>()\n j = Constant<value_ints = [0, 1, -1, -1]>()"
              "\n at = Reshape(j, s)\n y = GatherND(n, at)"),
      "dense<[2, 6]> : tensor<2xi64>");
  EXPECT_EQ(valueOf("s = Constant<value_ints = [2, 1]>()\n j = Constant<value_ints = [2, 0]>()\n"
                    "at = Reshape(j, s)\n y = GatherND<batch_dims = 1>(n, at)"),
            "dense<[3, 4]> : tensor<2xi64>");
}

// Another row would be read where only the flat position is checked.
TEST(Indexing, IndicesOutsideTheirDimension) {
  const std::string at =
      "j = Constant<value_ints = [3, 0]>()\n c = Constant<value_ints = [2, 1]>()\n"
      "at = Reshape(j, c)\n";
  EXPECT_THAT(valueOf(at + "y = GatherElements<axis = 1>(n, at)"),
              HasSubstr("index 3 does not exist among 3"));
  EXPECT_THAT(valueOf(at + "y = ScatterElements<axis = 1>(n, at, at)"),
              HasSubstr("index 3 does not exist among 3"));
  EXPECT_THAT(valueOf("j = Constant<value_ints = [0, -4]>()\n y = GatherND(n, j)"),
              HasSubstr("index -4 does not exist among 3"));
  EXPECT_THAT(opsOfBody("float[2, 3] x, int64[1, 3] at", "y = GatherElements<axis = 0>(x, at)"),
              HasSubstr("greater_equal less or mul add select gather"));
  // The kernel looks at those of rows.
  EXPECT_EQ(opsOfBody("float[2, 3] x, int64[2, 1] at", "y = GatherElements<axis = 1>(x, at)"),
            "gather");
}

// An index that is the same for all of a row, as `index[..., None].expand(..)` makes it.
TEST(Indexing, WholeRows) {
  const std::string inputs = "float[2, 5, 3] x, int64[2, 4, 1] at";
  const std::string expanded = "s = Constant<value_ints = [2, 4, 3]>()\n e = Expand(at, s)\n ";
  const std::string tiled = "s = Constant<value_ints = [1, 1, 3]>()\n e = Tile(at, s)\n ";
  for (const std::string& rows : {expanded, tiled}) {
    EXPECT_EQ(opsOfBody(inputs, rows + "y = GatherElements<axis = 1>(x, e)"), "reshape gather");
    EXPECT_EQ(opsOfBody(inputs + ", float[2, 4, 3] u",
                        rows + "y = ScatterElements<axis = 1, reduction = \"add\">(x, e, u)"),
              "reshape scatter_add add");
    EXPECT_EQ(
        opsOfBody(inputs + ", float[2, 4, 3] u", rows + "y = ScatterElements<axis = 1>(x, e, u)"),
        "reshape scatter_add cast greater reshape sub max gather select");
  }
  // Of some columns; and of others in each.
  EXPECT_EQ(opsOfBody(inputs, "y = GatherElements<axis = 1>(x, at)"), "reshape slice gather");
  EXPECT_THAT(opsOfBody(inputs + ", int64[2, 4, 3] all", "y = GatherElements<axis = 1>(x, all)"),
              HasSubstr("mul add select gather"));
  EXPECT_EQ(opsOfBody(inputs, "y = GatherND<batch_dims = 1>(x, at)"), "reshape gather");
}

TEST(Indexing, PadAndCrop) {
  EXPECT_EQ(opsOfBody("float[4] x", "p = Constant<value_ints = [1, -2]>()\n y = Pad(x, p)"),
            "slice pad");
  EXPECT_THAT(irOfBody("float[4] x", "p = Constant<value_ints = [1, -5]>()\n y = Pad(x, p)"),
              HasSubstr("don't fit the size 4"));
  auto padded = [](const std::string& mode) {
    return valueOf("p = Constant<value_ints = [3, 1]>()\n a = Slice(i, zero, two)\n" +
                   ("y = Pad<mode = \"" + mode + "\">(a, p)"));
  };
  EXPECT_EQ(padded("edge"), "dense<[1, 1, 1, 1, 2, 2]> : tensor<6xi64>");
  EXPECT_EQ(padded("reflect"), "dense<[2, 1, 2, 1, 2, 1]> : tensor<6xi64>");
  EXPECT_EQ(padded("wrap"), "dense<[2, 1, 2, 1, 2, 1]> : tensor<6xi64>");
  EXPECT_THAT(irOfBody("float[4, 4] x", "p = Constant<value_ints = [1, 1]>()\n y = Pad(x, p)"),
              HasSubstr("has 2 pads"));
  EXPECT_THAT(padded("mirror"), HasSubstr("does not know the mode \"mirror\""));
}

TEST(Indexing, LargestAndSmallest) {
  EXPECT_EQ(valueOf("v, y = TopK(f, two)"), "dense<[4, 2]> : tensor<2xi64>");
  EXPECT_EQ(valueOf("y, at = TopK<largest = 0>(f, two)"),
            "dense<[-6.000000e+00, -4.000000e+00]> : tensor<2xf32>");
  EXPECT_THAT(valueOf("k = Constant<value_ints = [7]>()\n v, y = TopK(f, k)"),
              HasSubstr("expects k from 0 to 6, got 7"));
  EXPECT_EQ(opsOfBody("float[2, 3] x", "y = ArgMax<axis = 1, select_last_index = 1>(x)"),
            "gather argmax sub");
}

TEST(Indexing, OneHotAndCompress) {
  EXPECT_THAT(valueOf("d = Constant<value_int = 2>()\n y = OneHot(two, d, zero)"),
              HasSubstr("two values"));
  EXPECT_EQ(valueOf("j = Constant<value_ints = [-1, 5]>()\n d = Constant<value_int = 2>()\n"
                    "v = Concat<axis = 0>(zero, two)\n y = OneHot(j, d, v)"),
            "dense<[[0, 2], [0, 0]]> : tensor<2x2xi64>");
  EXPECT_EQ(valueOf("c = Less(i, two)\n y = Compress(f, c)"),
            "dense<1.000000e+00> : tensor<1xf32>");
}

// Where the places are known, what is written over is a piece of the result.
TEST(Scatter, ConstantPlaces) {
  const std::string at =
      "j = Constant<value_ints = [1, 2]>()\n c = Constant<value_ints = [2, 1]>()\n"
      "at = Reshape(j, c)\n";
  EXPECT_EQ(opsOfBody("float[4, 3] x, float[2, 3] u", at + "y = ScatterND(x, at, u)"),
            "slice slice concat");
  EXPECT_EQ(
      opsOfBody("float[9] x, float[3] u",
                "j = Constant<value_ints = [1, 4, 7]>()\n c = Constant<value_ints = [3, 1]>()\n"
                "at = Reshape(j, c)\n y = ScatterND(x, at, u)"),
      "concat gather");
  EXPECT_EQ(valueOf("y = ScatterElements(i, two, zero)"),
            "dense<[1, 2, 0, 4, 5, 6]> : tensor<6xi64>");
  // Two writes to one place may differ, unless all are the same number.
  EXPECT_THAT(valueOf("j = Constant<value_ints = [-1, 5]>()\n y = ScatterElements(i, j, j)"),
              HasSubstr("its constant indices name a place several times"));
  EXPECT_EQ(valueOf("j = Constant<value_ints = [-1, 5]>()\n u = Constant<value_ints = [7, 7]>()\n"
                    "y = ScatterElements(i, j, u)"),
            "dense<[1, 2, 3, 4, 5, 7]> : tensor<6xi64>");
  EXPECT_THAT(valueOf("j = Constant<value_ints = [6]>()\n y = ScatterElements(i, j, one)"),
              HasSubstr("index 6 does not exist among 6"));
}

// `x[:, 1:3] = u` by the coordinates of each element: rows stay rows.
TEST(Scatter, Rectangle) {
  const auto at = [](const std::string& coordinates, const std::string& shape) {
    return "j = Constant<value_ints = [" + coordinates + "]>()\n c = Constant<value_ints = [" +
           shape + "]>()\n at = Reshape(j, c)\n";
  };
  EXPECT_EQ(opsOfBody("float[2, 4, 5] x, float[2, 2, 5] u",
                      at("0, 1, 0, 2, 1, 1, 1, 2", "2, 2, 2") + "y = ScatterND(x, at, u)"),
            "slice slice concat");
  // A part of a row.
  EXPECT_EQ(opsOfBody("float[3, 4] x, float[1, 2] u",
                      at("1, 0, 1, 1", "1, 2, 2") + "y = ScatterND(x, at, u)"),
            "slice slice concat slice slice concat");
  const std::string matrix = "s = Constant<value_ints = [2, 3]>()\n mx = Reshape(i, s)\n";
  const std::string updates =
      "v = Constant<value_ints = [7, 8]>()\n w = Constant<value_ints = [2, 1]>()\n"
      "u = Reshape(v, w)\n";
  EXPECT_EQ(valueOf(matrix + updates + at("0, 1, 1, 1", "2, 1, 2") + "y = ScatterND(mx, at, u)"),
            "dense<[[1, 7, 3], [4, 8, 6]]> : tensor<2x3xi64>");
  // No rectangle, or not in order.
  EXPECT_EQ(valueOf(matrix + updates + at("1, 1, 0, 1", "2, 1, 2") + "y = ScatterND(mx, at, u)"),
            "dense<[[1, 8, 3], [4, 7, 6]]> : tensor<2x3xi64>");
  EXPECT_EQ(valueOf(matrix + updates + at("0, 1, 1, 2", "2, 1, 2") + "y = ScatterND(mx, at, u)"),
            "dense<[[1, 7, 3], [4, 5, 8]]> : tensor<2x3xi64>");
  EXPECT_THAT(valueOf(matrix + updates + at("0, 3, 1, 3", "2, 1, 2") + "y = ScatterND(mx, at, u)"),
              HasSubstr("index 3 does not exist among 3"));
}

TEST(Scatter, WholeSlabs) {
  EXPECT_EQ(opsOfBody("float[3, 4, 5] x, float[1, 4, 5] u",
                      "s = Constant<value_ints = [1, 4, 5]>()\n at = Expand(zero, s)\n"
                      "y = ScatterElements<axis = 0>(x, at, u)"),
            "slice concat");
}

// Positions of so many rows are not folded where nothing asks for them.
TEST(Indexing, ManyRepeatedPositions) {
  EXPECT_EQ(
      valueOf("s = Constant<value_ints = [1500]>()\n o = ConstantOfShape<value = int64[1] {1}>(s)\n"
              "c = CumSum(o, zero)\n r = Unsqueeze(c, zero)\n q = Unsqueeze(c, one)\n"
              "t = Concat<axis = 0>(s, s)\n a = Expand(r, t)\n b = Expand(q, t)\n"
              "l = Less(a, b)\n p = NonZero(l)\n y = Shape(p)"),
      "dense<[2, 1124250]> : tensor<2xi64>");
}

// One index for each element of a row, more than could be enumerated.
TEST(Scatter, RowOfManyElements) {
  const std::string ir = irOfBody("float[3, 8388608, 9] x, float[1, 8388608, 9] u",
                                  "s = Shape(u)\n at = Expand(two, s)\n"
                                  "y = ScatterElements<axis = 0>(x, at, u)");
  EXPECT_THAT(ir, HasSubstr("limits = array<i64: 2, 8388608, 9>"));
  EXPECT_THAT(ir, HasSubstr("(tensor<2x8388608x9xf32>, tensor<1x8388608x9xf32>)"));
}

// Gates of experts: no place has two updates, and what the data are elsewhere is known.
TEST(Scatter, PlacesOfTheLargest) {
  const std::string body =
      "k = Constant<value_ints = [2]>()\n s = Constant<value_ints = [3, 5]>()\n"
      "v, at = TopK<axis = 1>(x, k)\n";
  const auto ops = [&](const std::string& data, const std::string& updates) {
    return opsOfBody("float[3, 5] x", body + "c = Constant<" + data + ">()\n d = Expand(c, s)\n" +
                                          updates + "y = ScatterElements<axis = 1>(d, at, u)");
  };
  EXPECT_EQ(ops("value_floats = [0.0]", "u = Identity(v)\n"), "topk gather scatter_add");
  EXPECT_EQ(ops("value_floats = [-1e9]", "u = Identity(v)\n"),
            "topk gather scatter_add greater scatter_add select");
  // Another dimension's indices may meet.
  EXPECT_THAT(
      opsOfBody("float[3, 5] x", body + "c = Constant<value_floats = [0.0]>()\n d = Expand(c, s)\n"
                                        "y = ScatterElements<axis = 0>(d, at, v)"),
      HasSubstr("cast greater sub max gather select"));
}

TEST(Scatter, OneHotOfTheLargest) {
  EXPECT_EQ(opsOfBody("float[3, 5] x",
                      "d = Constant<value_int = 5>()\n v = Constant<value_floats = [0.0, 1.0]>()\n"
                      "at = ArgMax<axis = 1, keepdims = 0>(x)\n y = OneHot(at, d, v)"),
            "argmax reshape equal select");
}

TEST(Scatter, PlacesOfTheData) {
  EXPECT_EQ(opsOfBody("float[4] x, int64[2, 1] at, float[2] u",
                      "y = ScatterND<reduction = \"add\">(x, at, u)"),
            "reshape scatter_add add");
  EXPECT_EQ(opsOfBody("int32[4] x, int64[2, 1] at, int32[2] u",
                      "y = ScatterND<reduction = \"add\">(x, at, u)"),
            "reshape cast scatter_add cast add");
  EXPECT_THAT(opsOfBody("float[4] x, int64[2, 1] at, float[2] u", "y = ScatterND(x, at, u)"),
              HasSubstr("scatter_add cast greater sub max gather select"));
  // Which of equal updates comes last makes no difference.
  EXPECT_THAT(opsOfBody("float[4] x, int64[1, 1] at",
                        "u = Constant<value_floats = [0.0]>()\n y = ScatterND(x, at, u)"),
              HasSubstr("scatter_add cast greater select"));
  EXPECT_THAT(opsOfBody("float[4] x, int64[2, 1] at, float[3] u", "y = ScatterND(x, at, u)"),
              HasSubstr("don't fit the indices"));
}

TEST(Indexing, TrianglesAndSums) {
  EXPECT_EQ(valueOf("y = Trilu<upper = 0>(n)"), "dense<[[1, 0, 0], [4, 5, 0]]> : tensor<2x3xi64>");
  EXPECT_EQ(valueOf("y = Trilu(n, one)"), "dense<[[0, 2, 3], [0, 0, 6]]> : tensor<2x3xi64>");
  EXPECT_EQ(valueOf("y = CumSum<exclusive = 1, reverse = 1>(i, zero)"),
            "dense<[20, 18, 15, 11, 6, 0]> : tensor<6xi64>");
}

TEST(Indexing, NonZeroOfAConstant) {
  EXPECT_EQ(valueOf("b = Greater(n, two)\n y = NonZero(b)"),
            "dense<[[0, 1, 1, 1], [2, 0, 1, 2]]> : tensor<2x4xi64>");
  EXPECT_EQ(valueOf("r = Relu(f)\n y = NonZero(r)"), "dense<[[0, 2, 4]]> : tensor<1x3xi64>");
}

// Indices that an op has found need no sign, also as JAX has them, in 32 bits.
TEST(Indexing, OneHotOfFoundIndices) {
  EXPECT_EQ(opsOfBody("float[2, 5] x",
                      "d = Constant<value_int = 5>()\n v = Constant<value_floats = [0.0, 1.0]>()\n"
                      "k = Constant<value_ints = [2]>()\n t, p = TopK(x, k)\n"
                      "j = Cast<to = 6>(p)\n y = OneHot(j, d, v)"),
            "topk cast reshape equal select");
}

}  // namespace
}  // namespace oriel
