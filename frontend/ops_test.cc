// Importers of single ops. Where operands are constants the result folds, so the value shows that
// the import means what ONNX says; elsewhere the ops that were made do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/op_registry.h"
#include "frontend/testing.h"

namespace oriel {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Imported;
using testing::importText;
using testing::modelText;
using ::testing::Not;
using testing::opsOf;

// Constants that the bodies below use: floats f [6], m [2, 3]; integers i [6].
const char kConstants[] = R"(
    f = Constant<value_floats = [1.0, -2.0, 3.0, -4.0, 5.0, -6.0]>()
    i = Constant<value_ints = [1, 2, 3, 4, 5, 6]>()
    matrix = Constant<value_ints = [2, 3]>()
    m = Reshape(f, matrix)
    n = Reshape(i, matrix)
    zero = Constant<value_ints = [0]>()
    one = Constant<value_ints = [1]>()
    two = Constant<value_ints = [2]>()
    last = Constant<value_ints = [-1]>()
)";

// What `y` folds to: "dense<[2, 3]> : tensor<2xi64>".
std::string valueOf(const std::string& body, int opset = 20) {
  Imported imported = importText(modelText(
      "g (float[1] unused) => (float[] y) {" + std::string(kConstants) + body + "}", opset));
  if (!imported.errors.empty()) {
    return imported.errors;
  }
  EXPECT_EQ(imported.ops, "") << imported.ir;
  auto start = imported.ir.find("value = ");
  auto end = imported.ir.find("} : ()");
  return start == std::string::npos || end == std::string::npos
             ? imported.ir
             : imported.ir.substr(start + 8, end - start - 8);
}

std::string opsOfBody(const std::string& inputs, const std::string& body, int opset = 20) {
  return opsOf(modelText(
      "g (" + inputs + ") => (float[] y) {" + std::string(kConstants) + body + "}", opset));
}

std::string irOfBody(const std::string& inputs, const std::string& body, int opset = 20) {
  Imported imported = importText(modelText(
      "g (" + inputs + ") => (float[] y) {" + std::string(kConstants) + body + "}", opset));
  return imported.ir + imported.errors;
}

TEST(Shapes, ReshapeCopiesZerosAndInfersOne) {
  EXPECT_EQ(valueOf("s = Constant<value_ints = [0, -1]>()\n r = Reshape(n, s)\n y = Shape(r)"),
            "dense<[2, 3]> : tensor<2xi64>");
  EXPECT_EQ(valueOf("s = Constant<value_ints = [3, -1]>()\n y = Reshape(n, s)"),
            "dense<[[1, 2], [3, 4], [5, 6]]> : tensor<3x2xi64>");
  EXPECT_THAT(valueOf("s = Constant<value_ints = [4, -1]>()\n y = Reshape(n, s)"),
              HasSubstr("no size at 1 makes 6 elements"));
  EXPECT_THAT(valueOf("s = Constant<value_ints = [4]>()\n y = Reshape(n, s)"),
              HasSubstr("the input has 6 elements, the shape 4"));
}

TEST(Shapes, BlocksOfImages) {
  EXPECT_EQ(opsOfBody("float[1, 8, 2, 3] x", "y = DepthToSpace<blocksize = 2>(x)", 20),
            "reshape transpose reshape");
  EXPECT_THAT(irOfBody("float[1, 6, 2, 3] x", "y = DepthToSpace<blocksize = 2>(x)", 20),
              HasSubstr("channels in 2 x 2 parts, got 'tensor<1x6x2x3xf32>'"));
  EXPECT_THAT(irOfBody("float[1, 6, 2, 3] x", "y = SpaceToDepth<blocksize = 2>(x)", 20),
              HasSubstr("rows and columns in blocks of 2, got 'tensor<1x6x2x3xf32>'"));
  // The square of 2^32 is 0 in 64 bits.
  EXPECT_THAT(irOfBody("float[1, 4, 2, 3] x", "y = DepthToSpace<blocksize = 4294967296>(x)", 20),
              HasSubstr("a blocksize of 1 to 1048576"));
}

TEST(Shapes, SqueezeUnsqueezeFlattenTranspose) {
  EXPECT_EQ(valueOf("u = Unsqueeze(n, last)\n y = Shape(u)"), "dense<[2, 3, 1]> : tensor<3xi64>");
  EXPECT_EQ(valueOf("u = Unsqueeze(n, last)\n s = Squeeze(u, two)\n y = Shape(s)"),
            "dense<[2, 3]> : tensor<2xi64>");
  EXPECT_THAT(valueOf("y = Squeeze(n, one)"), HasSubstr("axis 1 has the size 3"));
  EXPECT_EQ(valueOf("t = Flatten<axis = 0>(n)\n y = Shape(t)"), "dense<[1, 6]> : tensor<2xi64>");
  EXPECT_EQ(valueOf("y = Transpose(n)"), "dense<[[1, 4], [2, 5], [3, 6]]> : tensor<3x2xi64>");
}

TEST(Shapes, ShapeOfSomeDimensions) {
  EXPECT_EQ(valueOf("y = Shape<start = -1>(n)"), "dense<3> : tensor<1xi64>");
  EXPECT_EQ(valueOf("y = Shape<end = 1>(n)"), "dense<2> : tensor<1xi64>");
  EXPECT_EQ(valueOf("y = Size(n)"), "dense<6> : tensor<i64>");
}

TEST(Shapes, ExpandBroadcastsBothWays) {
  EXPECT_EQ(valueOf("s = Constant<value_ints = [2, 1, 1]>()\n e = Expand(n, s)\n y = Shape(e)"),
            "dense<[2, 2, 3]> : tensor<3xi64>");
  EXPECT_EQ(valueOf("r = Constant<value_ints = [2]>()\n t = Tile(two, r)\n y = Add(t, zero)"),
            "dense<2> : tensor<2xi64>");
  EXPECT_EQ(valueOf("r = Constant<value_ints = [1, 2]>()\n y = Tile(n, r)"),
            "dense<[[1, 2, 3, 1, 2, 3], [4, 5, 6, 4, 5, 6]]> : tensor<2x6xi64>");
}

TEST(Shapes, ConcatAndSplit) {
  EXPECT_EQ(valueOf("y = Concat<axis = -1>(n, n)"),
            "dense<[[1, 2, 3, 1, 2, 3], [4, 5, 6, 4, 5, 6]]> : tensor<2x6xi64>");
  EXPECT_EQ(valueOf("s = Constant<value_ints = [1, 2]>()\n a, y = Split<axis = 1>(n, s)"),
            "dense<[[2, 3], [5, 6]]> : tensor<2x2xi64>");
  EXPECT_EQ(valueOf("a, y = Split<axis = 1, num_outputs = 2>(n)"),
            "dense<[[3], [6]]> : tensor<2x1xi64>");
  EXPECT_THAT(valueOf("s = Constant<value_ints = [1, 5]>()\n a, y = Split<axis = 1>(n, s)"),
              HasSubstr("don't fit into the size 3"));
}

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
  EXPECT_THAT(opsOfBody("float[2, 3] x, int64[2, 1] at", "y = GatherElements<axis = 1>(x, at)"),
              HasSubstr("greater_equal less or add select gather"));
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
  // The last of two writes to one place counts.
  EXPECT_EQ(valueOf("j = Constant<value_ints = [-1, 5]>()\n y = ScatterElements(i, j, j)"),
            "dense<[1, 2, 3, 4, 5, 5]> : tensor<6xi64>");
  EXPECT_THAT(valueOf("j = Constant<value_ints = [6]>()\n y = ScatterElements(i, j, one)"),
              HasSubstr("index 6 does not exist among 6"));
}

TEST(Scatter, WholeSlabs) {
  EXPECT_EQ(opsOfBody("float[3, 4, 5] x, float[1, 4, 5] u",
                      "s = Constant<value_ints = [1, 4, 5]>()\n at = Expand(zero, s)\n"
                      "y = ScatterElements<axis = 0>(x, at, u)"),
            "slice concat");
}

TEST(Scatter, PlacesOfTheData) {
  EXPECT_EQ(opsOfBody("float[4] x, int64[2, 1] at, float[2] u",
                      "y = ScatterND<reduction = \"add\">(x, at, u)"),
            "reshape scatter_add add");
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

TEST(Constants, RangesAndFills) {
  EXPECT_EQ(valueOf("s = Constant<value_int = 5>()\n l = Constant<value_int = 0>()\n"
                    "d = Constant<value_int = -2>()\n y = Range(s, l, d)"),
            "dense<[5, 3, 1]> : tensor<3xi64>");
  EXPECT_THAT(valueOf("s = Constant<value_int = 1>()\n l = Constant<value_float = 5.0>()\n"
                      "d = Constant<value_float = 1.0>()\n y = Range(s, l, d)"),
              HasSubstr("start, limit and delta are 'i64', 'f32' and 'f32'"));
  EXPECT_EQ(valueOf("y = ConstantOfShape(two)"), "dense<0.000000e+00> : tensor<2xf32>");
  EXPECT_THAT(
      valueOf("s = Constant<value_int = 0>()\n l = Constant<value_int = 9223372036854775807>()"
              "\n d = Constant<value_int = 1>()\n y = Range(s, l, d)"),
      HasSubstr("elements, more than"));
}

TEST(Elementwise, ArithmeticOnConstants) {
  EXPECT_EQ(valueOf("y = Mul(i, two)"), "dense<[2, 4, 6, 8, 10, 12]> : tensor<6xi64>");
  EXPECT_EQ(valueOf("y = Max(i, two, one)"), "dense<[2, 2, 3, 4, 5, 6]> : tensor<6xi64>");
  EXPECT_EQ(valueOf("y = Clip(i, two, )"), "dense<[2, 2, 3, 4, 5, 6]> : tensor<6xi64>");
  EXPECT_EQ(valueOf("t = Constant<value_int = 2>()\n y = Pow(f, t)"),
            "dense<[1.000000e+00, 4.000000e+00, 9.000000e+00, 1.600000e+01, 2.500000e+01, "
            "3.600000e+01]> : tensor<6xf32>");
  EXPECT_EQ(valueOf("l = Less(f, last)\n c = CastLike(last, f)\n y = Cast<to = 7>(f)"),
            "dense<[1, -2, 3, -4, 5, -6]> : tensor<6xi64>");
  EXPECT_EQ(valueOf("b = Equal(i, two)\n y = Where(b, last, i)"),
            "dense<[1, -1, 3, 4, 5, 6]> : tensor<6xi64>");
  EXPECT_EQ(valueOf("y = IsNaN(f)"), "dense<false> : tensor<6xi1>");
  EXPECT_EQ(valueOf("t = Constant<value_float = -4.0>()\n y = Mod<fmod = 1>(f, t)"),
            "dense<[1.000000e+00, -2.000000e+00, 3.000000e+00, -0.000000e+00, 1.000000e+00, "
            "-2.000000e+00]> : tensor<6xf32>");
  EXPECT_EQ(valueOf("y = IsInf(f)"), "dense<false> : tensor<6xi1>");
  EXPECT_THAT(valueOf("y = Cast<to = 8>(f)"), HasSubstr("casts to string"));
}

TEST(Reductions, AxesAreAnAttributeThenAnOperand) {
  EXPECT_EQ(valueOf("y = ReduceMax<axes = [1], keepdims = 0>(n)", 17),
            "dense<[3, 6]> : tensor<2xi64>");
  EXPECT_EQ(valueOf("y = ReduceMax<keepdims = 0>(n, one)", 18), "dense<[3, 6]> : tensor<2xi64>");
  EXPECT_EQ(valueOf("y = ReduceSum(n, last)", 13), "dense<[[6], [15]]> : tensor<2x1xi64>");
  EXPECT_EQ(valueOf("y = ReduceProd<keepdims = 0>(n)"), "dense<720> : tensor<i64>");
  EXPECT_EQ(valueOf("y = ReduceSum<noop_with_empty_axes = 1>(i)"),
            "dense<[1, 2, 3, 4, 5, 6]> : tensor<6xi64>");
  EXPECT_EQ(valueOf("y = ReduceSumSquare<keepdims = 0>(i)"), "dense<91> : tensor<i64>");
  EXPECT_THAT(valueOf("y = ReduceSum(i, one)"), HasSubstr("axis 1 does not exist"));
  EXPECT_EQ(valueOf("z = CastLike(zero, f)\n l = Log(z)\n y = ReduceLogSumExp<keepdims = 0>(l)"),
            "dense<0xFF800000> : tensor<f32>");
  EXPECT_THAT(valueOf("y = ReduceLogSumExp(i)"), HasSubstr("takes floats, not"));
  EXPECT_EQ(opsOfBody("float[2, 3] x", "y = ReduceL2(x, one)"), "mul reduce_sum sqrt");
}

TEST(Linear, MatMulBecomesLinearOrMatmul) {
  EXPECT_EQ(opsOfBody("float[2, 4, 3] x, float[3, 5] w", "y = MatMul(x, w)"), "linear");
  EXPECT_EQ(opsOfBody("float[4, 3] x, float[3, 5] w", "y = MatMul(x, w)"), "matmul");
  EXPECT_EQ(opsOfBody("float[2, 1, 4, 3] x, float[5, 3, 6] w", "y = MatMul(x, w)"),
            "broadcast broadcast matmul");
  EXPECT_THAT(irOfBody("float[3] x, float[2, 3, 5] w", "y = MatMul(x, w)"),
              HasSubstr("-> (tensor<2x5xf32>"));
  EXPECT_THAT(irOfBody("float[2, 4, 3] x, float[3] w", "y = MatMul(x, w)"),
              HasSubstr("-> (tensor<2x4xf32>"));
  EXPECT_THAT(irOfBody("float[3] x, float[3] w", "y = MatMul(x, w)"), HasSubstr("-> (tensor<f32>"));
  EXPECT_THAT(irOfBody("float[2, 4, 3] x, float[3, 3, 5] w", "y = MatMul(x, w)"),
              HasSubstr("don't broadcast"));
}

TEST(Linear, Einsum) {
  // Without a sum it is a product of elements, which folds.
  EXPECT_THAT(valueOf("y = Einsum<equation = \"i,j->ij\">(two, i)"), HasSubstr("tensor<1x6xi64>"));
  EXPECT_EQ(valueOf("p = Einsum<equation = \"ij->j\">(n)\n y = Identity(p)"),
            "dense<[5, 7, 9]> : tensor<3xi64>");
  EXPECT_EQ(valueOf("y = Einsum<equation = \"ij -> ji\">(n)"),
            "dense<[[1, 4], [2, 5], [3, 6]]> : tensor<3x2xi64>");
  EXPECT_EQ(opsOfBody("float[2, 4, 8, 3] q, float[2, 4, 9, 3] k",
                      "y = Einsum<equation = \"bhqd,bhkd->bhqk\">(q, k)"),
            "transpose matmul");
  EXPECT_EQ(
      opsOfBody("float[2, 4, 3] x, float[3, 5] w", "y = Einsum<equation = \"...d,de\">(x, w)"),
      "linear");
  EXPECT_THAT(irOfBody("float[2, 3, 4] x, float[3, 4, 5] w, float[5, 6] v",
                       "y = Einsum<equation = \"bhd,hde,ef->fb\">(x, w, v)"),
              HasSubstr("-> (tensor<6x2xf32>"));
  EXPECT_THAT(irOfBody("float[3] x, float[3] w", "y = Einsum<equation = \"i,i\">(x, w)"),
              HasSubstr("-> (tensor<f32>"));
  // Heads are outside of their elements in the product, as they are in the output.
  EXPECT_EQ(opsOfBody("float[2, 4, 6] x, float[6, 5, 3] w",
                      "y = Einsum<equation = \"bnd,dkh->bnhk\">(x, w)"),
            "transpose reshape linear reshape");
}

TEST(Linear, EinsumDiagonal) {
  EXPECT_EQ(opsOfBody("float[2, 3, 2] x", "y = Einsum<equation = \"iji->ij\">(x)"),
            "transpose reshape gather transpose");
  EXPECT_THAT(irOfBody("float[3, 3] x", "y = Einsum<equation = \"ii\">(x)"),
              HasSubstr("-> (tensor<f32>"));
}

TEST(Linear, EinsumErrors) {
  auto errors = [](const std::string& equation) {
    return irOfBody("float[2, 2] x, float[2, 3] w",
                    "y = Einsum<equation = \"" + equation + "\">(x, w)");
  };
  EXPECT_THAT(errors("ij,kj->ik"), HasSubstr("the sizes 2 and 3"));
  EXPECT_THAT(errors("ij->ij"), HasSubstr("2 operands"));
  EXPECT_THAT(errors("ijk,ij->i"), HasSubstr("the term \"ijk\""));
  EXPECT_THAT(errors("i..,ij->i"), HasSubstr("the term \"i..\""));
  EXPECT_THAT(errors("ij,jk->iz"), HasSubstr("in no operand"));
  EXPECT_THAT(errors(""), HasSubstr("2 operands"));
}

TEST(Pool, AverageOfTiles) {
  const std::string shape = "s = Constant<value_ints = [1, 1, 6]>()\n t = Reshape(f, s)\n";
  EXPECT_EQ(valueOf(shape + "y = AveragePool<kernel_shape = [2], strides = [2]>(t)"),
            "dense<-5.000000e-01> : tensor<1x1x3xf32>");
  EXPECT_THAT(irOfBody("float[2, 3, 5, 4] x",
                       "y = AveragePool<kernel_shape = [2, 2], strides = [2, 2]>(x)"),
              HasSubstr("-> (tensor<2x3x2x2xf32>"));
  EXPECT_THAT(irOfBody("float[2, 3, 5, 4] x", "y = GlobalAveragePool(x)"),
              HasSubstr("-> (tensor<2x3x1x1xf32>"));
  EXPECT_THAT(irOfBody("float[2, 3, 5, 4] x",
                       "y = AveragePool<kernel_shape = [6, 2], strides = [6, 2]>(x)"),
              HasSubstr("a window of 6 over 5 elements"));
}

TEST(Pool, OverlappingWindows) {
  const std::string shape = "s = Constant<value_ints = [1, 1, 6]>()\n t = Reshape(f, s)\n";
  EXPECT_EQ(valueOf(shape + "y = MaxPool<kernel_shape = [3], pads = [1, 0]>(t)"),
            "dense<[[[1.000000e+00, 3.000000e+00, 3.000000e+00, 5.000000e+00, 5.000000e+00]]]> : "
            "tensor<1x1x5xf32>");
  // The first window holds two elements, the others three.
  EXPECT_EQ(valueOf(shape + "y = AveragePool<kernel_shape = [3], pads = [1, 0], strides = [2]>(t)"),
            "dense<[[[-5.000000e-01, -1.000000e+00, -1.66666663]]]> : tensor<1x1x3xf32>");
  EXPECT_EQ(valueOf(shape + "y = GlobalLpPool<p = 1>(t)"),
            "dense<2.100000e+01> : tensor<1x1x1xf32>");
  EXPECT_THAT(irOfBody("float[1, 3, 8] x", "y = MaxPool<kernel_shape = [3, 3]>(x)"),
              HasSubstr("one positive kernel size"));
}

TEST(Pool, WindowsWithoutInput) {
  for (const char* op : {"AveragePool", "MaxPool"}) {
    auto pooled = [&](const std::string& input, const std::string& attributes) {
      return irOfBody("float[1, 1, 4] x",
                      "none = Slice(x, zero, zero, two)\n y = " + std::string(op) + "<" +
                          attributes + ">(" + input + ")");
    };
    EXPECT_THAT(pooled("none", "kernel_shape = [1], auto_pad = \"SAME_UPPER\""),
                HasSubstr("has no window over 0 elements"));
    EXPECT_THAT(pooled("none", "kernel_shape = [2], pads = [0, 2], ceil_mode = 1"),
                HasSubstr("has no window over 0 elements"));
    EXPECT_THAT(pooled("x", "kernel_shape = [2], pads = [2, 0]"), HasSubstr("has pads 2 and 0"));
    EXPECT_THAT(pooled("x", "kernel_shape = [2], pads = [-1, 0]"), HasSubstr("not negative"));
  }
}

// Numbers of a file that no model has are refused before anything is computed from them.
TEST(Pool, NumbersBeyondAllSizes) {
  const std::string x = "float[1, 1, 1099511627776] x";
  EXPECT_THAT(irOfBody(x, "y = MaxPool<kernel_shape = [2], strides = [9223372036854775807]>(x)"),
              HasSubstr("one positive kernel size"));
  EXPECT_THAT(irOfBody("float[1, 1, 1073741824] x",
                       "y = AveragePool<kernel_shape = [2], pads = [1, 0]>(x)"),
              HasSubstr("has 1073741824 windows"));
  EXPECT_THAT(irOfBody("float[1, 4, 5] x, float[4, 3, 3] w",
                       "y = ConvTranspose<output_padding = [9223372036854775807]>(x, w)"),
              HasSubstr("beyond all sizes"));
  EXPECT_THAT(irOfBody("float[1, 4, 5] x", "y = LRN<size = 9223372036854775807>(x)"),
              HasSubstr("normalises 9223372036854775807 channels"));
}

TEST(Resize, NumbersBeyondAllSizes) {
  auto resized = [](const std::string& attributes, const std::string& scale) {
    return irOfBody("float[1, 1, 4] x", "s = Constant<value_floats = [1.0, 1.0, " + scale +
                                            "]>()\n" +
                                            "r = Constant<value_floats = [0.0, 0.0, 0.0, "
                                            "1.0, 1.0, 1.0e30]>()\n y = Resize<" +
                                            attributes + ">(x, r, s)");
  };
  EXPECT_THAT(resized("mode = \"linear\"", "1.0e30"), HasSubstr("scales a size of 4"));
  EXPECT_THAT(resized("mode = \"linear\"", "1.0e-30"), HasSubstr("scales a size of 4"));
  EXPECT_THAT(resized("mode = \"cubic\", antialias = 1, "
                      "coordinate_transformation_mode = \"tf_crop_and_resize\"",
                      "1.0e-30"),
              HasSubstr("has nothing of the input"));
  EXPECT_THAT(resized("coordinate_transformation_mode = \"best\"", "2.0"),
              HasSubstr("does not know the coordinate_transformation_mode \"best\""));
}

// PyTorch 2.15: interpolate(arange(10), scale_factor=0.7), (arange(9), scale_factor=5 / 3) and
// (arange(5), size=41).
TEST(Resize, RoundsAsPyTorchDoes) {
  auto picked = [](int size, const std::string& constant, const std::string& operands) {
    return irOfBody("float[" + std::to_string(size) + "] x",
                    "s = Constant<" + constant +
                        ">()\n y = Resize<nearest_mode = \"floor\", "
                        "coordinate_transformation_mode = \"asymmetric\">(x, " +
                        operands + ")");
  };
  EXPECT_THAT(picked(10, "value_floats = [0.7]", ", s"), HasSubstr("dense<[0, 1, 2, 4, 5, 7, 8]>"));
  EXPECT_THAT(picked(9, "value_floats = [1.66666666]", ", s"),
              HasSubstr("dense<[0, 0, 1, 1, 2, 3, 3, 4, 4, 5, 6, 6, 7, 7, 8]>"));
  EXPECT_THAT(picked(5, "value_ints = [41]", ", , s"), HasSubstr("tensor<41xi64>"));
}

TEST(Resize, NothingToResizeTo) {
  EXPECT_THAT(irOfBody("float[4] x", "y = Resize(x)"), HasSubstr("has neither scales nor sizes"));
  EXPECT_THAT(
      irOfBody("int32[4] x",
               "s = Constant<value_ints = [8]>()\n y = Resize<mode = \"linear\">(x, , , s)"),
      HasSubstr("can't interpolate 'tensor<4xi32>'"));
}

TEST(Resize, OneDimensionAfterTheOther) {
  const std::string sizes = "s = Constant<value_ints = [1, 3, 4, 4]>()\n";
  EXPECT_EQ(opsOfBody("float[1, 3, 2, 2] x", sizes + "y = Resize(x, , , s)"), "gather gather");
  EXPECT_EQ(opsOfBody("float[1, 3, 2, 2] x", sizes + "y = Resize<mode = \"linear\">(x, , , s)"),
            "transpose linear transpose linear");
  EXPECT_THAT(irOfBody("float[1, 1, 2] x",
                       "s = Constant<value_ints = [1, 1, 4]>()\n"
                       "y = Resize<mode = \"linear\">(x, , , s)"),
              HasSubstr("dense<[[1.000000e+00, 0.000000e+00], [7.500000e-01, 2.500000e-01], "
                        "[2.500000e-01, 7.500000e-01], [0.000000e+00, 1.000000e+00]]>"));
  EXPECT_THAT(irOfBody("float[1, 3, 2, 2] x", sizes + "y = Resize<mode = \"best\">(x, , , s)"),
              HasSubstr("the mode \"best\""));
}

TEST(Linear, Gemm) {
  EXPECT_THAT(irOfBody("float[4, 3] x, float[5, 3] w, float[5] b", "y = Gemm<transB = 1>(x, w, b)"),
              HasSubstr("oriel.linear %arg0, %arg1, %arg2 {transpose_weight = true}"));
  EXPECT_EQ(opsOfBody("float[3, 4] x, float[3, 5] w, float[4, 1] c",
                      "y = Gemm<transA = 1, alpha = 2.0, beta = 3.0>(x, w, c)"),
            "transpose linear mul mul add");
}

TEST(Linear, Conv) {
  EXPECT_THAT(irOfBody("float[1, 3, 5, 5] x, float[4, 3, 3, 3] w",
                       "y = Conv<auto_pad = \"SAME_UPPER\", strides = [2, 2]>(x, w)"),
              AllOf(HasSubstr("pads = array<i64: 1, 1, 1, 1>"), HasSubstr("tensor<1x4x3x3xf32>")));
  EXPECT_THAT(irOfBody("float[1, 3, 5] x, float[4, 3, 3, 3] w", "y = Conv(x, w)"),
              HasSubstr("convolves"));
  EXPECT_THAT(irOfBody("float[1, 3, 5] x, float[4, 3, 3] w", "y = Conv<strides = [0]>(x, w)"),
              HasSubstr("stride"));
}

// PyTorch's exporter gives a convolution without a bias one of zeros, not always of a fitting
// shape.
TEST(Linear, ConvWithABiasOfZeros) {
  EXPECT_EQ(opsOfBody("float[1, 3, 5] x, float[2, 3, 3] w",
                      "z = CastLike(zero, x)\n s = Constant<value_ints = [2, 2]>()\n"
                      "b = Expand(z, s)\n y = Conv(x, w, b)"),
            "conv");
}

TEST(Linear, ConvTranspose) {
  EXPECT_THAT(
      irOfBody("float[1, 4, 5] x, float[4, 3, 3] w", "y = ConvTranspose<auto_pad = \"FOO\">(x, w)"),
      HasSubstr("does not know auto_pad \"FOO\""));
  EXPECT_THAT(irOfBody("float[1, 4, 5] x, float[4, 3, 3] w",
                       "y = ConvTranspose<strides = [2], output_padding = [1]>(x, w)"),
              HasSubstr("-> (tensor<1x3x12xf32>"));
  EXPECT_EQ(
      opsOfBody("float[1, 4, 5] x, float[4, 3, 3] w, float[3] b", "y = ConvTranspose(x, w, b)"),
      "conv_input_grad reshape add");
}

TEST(Normalization, OverTrailingDimensions) {
  EXPECT_EQ(opsOfBody("float[2, 3] x, float[3] w, float[3] b", "y = LayerNormalization(x, w, b)"),
            "layer_norm");
  EXPECT_EQ(opsOfBody("float[2, 3, 4] x, float[3, 4] w", "y = LayerNormalization<axis = 1>(x, w)"),
            "reshape reshape layer_norm reshape");
  EXPECT_EQ(opsOfBody("float[2, 3] x, float[3] w",
                      "r, mean = LayerNormalization(x, w)\n y = Add(r, mean)"),
            "layer_norm reduce_mean add");
  EXPECT_EQ(opsOfBody("float[2, 3] x, float[3] w", "y = RMSNormalization(x, w)", 23), "rms_norm");
  // Of more than a row: a factor of the norm without a weight.
  EXPECT_EQ(opsOfBody("float[2, 3] x, float[2, 3] w", "y = RMSNormalization(x, w)", 23),
            "rms_norm mul");
  EXPECT_EQ(
      opsOfBody("float[2, 3] x, float[2, 3] w, float[3] b", "y = LayerNormalization(x, w, b)", 17),
      "layer_norm mul add");
}

TEST(Normalization, BatchNormalizationOverChannels) {
  EXPECT_THAT(
      irOfBody("float[2, 3] x, float[3] w, float[2] v", "y = BatchNormalization(x, w, w, w, v)"),
      HasSubstr("operand 4 is 'tensor<2xf32>', expected a vector over the 3 channels"));
}

TEST(Normalization, Softmax) {
  EXPECT_THAT(irOfBody("float[2, 3] x", "y = Softmax<axis = -2>(x)"),
              HasSubstr("oriel.softmax %arg0 {dim = 0"));
  EXPECT_EQ(opsOfBody("float[2, 3] x", "y = LogSoftmax(x)"),
            "reduce_max sub exp reduce_sum log sub");
}

TEST(Activations, NamedAndComposed) {
  EXPECT_THAT(irOfBody("float[2] x", "y = Gelu<approximate = \"tanh\">(x)"),
              HasSubstr("kind = \"gelu_tanh\""));
  EXPECT_THAT(irOfBody("float[2] x", "y = Swish(x)", 24), HasSubstr("kind = \"silu\""));
  EXPECT_EQ(opsOfBody("float[2] x", "y = HardSwish(x)"), "mul add max min mul");
}

TEST(Attention, OfRank3And4) {
  const char kSmall[] = "float[2, 4, 8, 16] q, float[2, 2, 8, 16] k, float[2, 2, 8, 16] v";
  EXPECT_THAT(
      irOfBody(kSmall, "y = Attention<is_causal = 1>(q, k, v)", 23),
      HasSubstr("oriel.attention %arg0, %arg1, %arg2 {causal = true, scale = 2.500000e-01"));
  EXPECT_EQ(opsOfBody("float[2, 8, 64] q, float[2, 8, 32] k, float[2, 8, 32] v, bool[8, 8] keep",
                      "y = Attention<q_num_heads = 4, kv_num_heads = 2>(q, k, v, keep)", 23),
            "reshape transpose reshape transpose reshape transpose reshape attention transpose "
            "reshape");
  EXPECT_EQ(opsOfBody(kSmall, "y = Attention<softcap = 2.0>(q, k, v)", 23),
            "reshape broadcast reshape reshape broadcast reshape matmul mul mul tanh mul softmax "
            "matmul");
}

// ONNX aligns the first query with the first key, or with the first key after the cache; Oriel's
// op the last query with the last key.
TEST(Attention, CausalWithMoreKeysThanQueries) {
  const char kOne[] = "float[2, 4, 1, 16] q, float[2, 2, 3, 16] k, float[2, 2, 3, 16] v";
  EXPECT_THAT(
      irOfBody(kOne, "y = Attention<is_causal = 1>(q, k, v)", 23),
      AllOf(HasSubstr("dense<[[[[true, false, false]]]]>"), Not(HasSubstr("causal = true"))));
  EXPECT_THAT(irOfBody("float[2, 4, 1, 16] q, float[2, 2, 1, 16] k, float[2, 2, 1, 16] v, "
                       "float[2, 2, 2, 16] pk, float[2, 2, 2, 16] pv",
                       "y, kk, vv = Attention<is_causal = 1>(q, k, v, , pk, pv)", 23),
              HasSubstr("causal = true"));
  EXPECT_THAT(
      irOfBody(kOne, "y = Attention<left_window_size = 1, right_window_size = 1>(q, k, v)", 25),
      HasSubstr("dense<[[[[true, true, false]]]]>"));
}

TEST(Attention, RotaryEmbedding) {
  EXPECT_EQ(opsOfBody("float[2, 4, 8, 16] x, float[9, 8] c, float[9, 8] s, int64[2, 8] p",
                      "y = RotaryEmbedding(x, c, s, p)", 23),
            "gather reshape gather reshape rope");
  EXPECT_EQ(opsOfBody("float[2, 8, 64] x, float[2, 8, 4] c, float[2, 8, 4] s",
                      "y = RotaryEmbedding<num_heads = 4, rotary_embedding_dim = 8>(x, c, s)", 23),
            "reshape reshape reshape transpose rope transpose reshape");
}

// One mistake, one error.
TEST(Attention, Mistakes) {
  std::string heads = irOfBody("float[2, 8, 64] q", "y = Attention(q, q, q)", 23);
  EXPECT_THAT(heads, HasSubstr("into 0 heads"));
  EXPECT_EQ(heads.find("into 0 heads"), heads.rfind("into 0 heads"));
  std::string cache =
      irOfBody("float[2, 4, 8, 16] x, float[8] c", "y = RotaryEmbedding(x, c, c)", 23);
  EXPECT_THAT(cache, HasSubstr("cache of rank 1"));
  EXPECT_EQ(cache.find("cache of rank 1"), cache.rfind("cache of rank 1"));
  EXPECT_THAT(irOfBody("float[2, 4, 8, 16] q, float[2, 4, 8, 16] p, float[4] v",
                       "y, k, w = Attention(q, q, q, , p, v)", 23),
              HasSubstr("a past_value 'tensor<4xf32>', expected rank 4"));
}

TEST(Registry, VersionsAndNearestNames) {
  const OpRegistry& registry = OpRegistry::standard();
  EXPECT_NE(registry.find("", "ReduceMax", 13), registry.find("", "ReduceMax", 18));
  EXPECT_EQ(registry.find("", "ReduceMax", 18), registry.find("ai.onnx", "ReduceMax", 24));
  EXPECT_EQ(registry.find("", "Gelu", 19), nullptr);
  EXPECT_EQ(registry.find("com.acme", "Gelu", 20), nullptr);
  EXPECT_EQ(registry.nearest("Softmx"), "Softmax");
  EXPECT_EQ(registry.nearest("QuickGel"), "com.microsoft::QuickGelu");
  EXPECT_EQ(registry.nearest("Qqqqqqq"), "");
}

mlir::LogicalResult first(NodeImporter&) { return mlir::failure(); }
mlir::LogicalResult second(NodeImporter&) { return mlir::success(); }

TEST(Registry, VersionsOfAnotherDomain) {
  OpRegistry registry;
  registry.add("Snake", 1, first, "com.acme");
  registry.add("Snake", 3, second, "com.acme");
  EXPECT_EQ(registry.find("com.acme", "Snake", 2), first);
  EXPECT_EQ(registry.find("com.acme", "Snake", 3), second);
  EXPECT_EQ(registry.find("com.acme", "Snake", 0), second);  // the model doesn't say
}

TEST(Registry, DocumentationListsEveryOp) {
  std::string page = testing::readFile(ORIEL_SOURCE_DIR "/docs/generated/onnx_ops.md");
  ASSERT_NE(page, "");
  for (const std::string& name : OpRegistry::standard().names()) {
    EXPECT_THAT(page, HasSubstr("`" + name + "`"));
  }
}

}  // namespace
}  // namespace oriel
