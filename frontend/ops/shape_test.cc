// Importers of ops that reshape, fill, compute element by element and reduce. Where operands are
// constants the result folds, so the value shows that the import means what ONNX says; elsewhere
// the ops that were made do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/testing.h"

namespace oriel {
namespace {

using ::testing::HasSubstr;
using testing::irOfBody;
using testing::opsOfBody;
using testing::valueOf;

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

// What PyTorch's dynamo exporter writes for x.squeeze(0) of a dimension that is not 1.
TEST(Shapes, SqueezeOfMoreThanOne) {
  const std::string ir = irOfBody("float[2, 1] x", "y = Squeeze(x, zero)");
  EXPECT_THAT(ir, AllOf(HasSubstr("Squeeze keeps axis 0, which has the size 2"),
                        HasSubstr("-> (tensor<2x1xf32>")));
}

TEST(Shapes, SqueezeUnsqueezeFlattenTranspose) {
  EXPECT_EQ(valueOf("u = Unsqueeze(n, last)\n y = Shape(u)"), "dense<[2, 3, 1]> : tensor<3xi64>");
  EXPECT_EQ(valueOf("u = Unsqueeze(n, last)\n s = Squeeze(u, two)\n y = Shape(s)"),
            "dense<[2, 3]> : tensor<2xi64>");
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

TEST(Shapes, ConcatOfTheSame) {
  EXPECT_EQ(opsOfBody("float[2, 1, 3] x", "y = Concat<axis = 1>(x, x, x, x)"), "broadcast");
  EXPECT_EQ(opsOfBody("float[2, 1, 3] x", "y = Concat<axis = 2>(x, x)"), "concat");
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

}  // namespace
}  // namespace oriel
