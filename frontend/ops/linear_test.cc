// Importers of products: matrices, einsum, convolution, Fourier transforms, recurrent layers. Where
// operands are constants the result folds, so the value shows that the import means what ONNX says;
// elsewhere the ops that were made do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/testing.h"

namespace oriel {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::irOfBody;
using testing::opsOfBody;
using testing::valueOf;

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

// A size of 1 is that of any other term, as in NumPy; also where it is summed.
TEST(Linear, EinsumRepeats) {
  const std::string row = "s = Constant<value = int64[1, 3] {10, 20, 30}>()\n";
  EXPECT_EQ(valueOf(row + "y = Einsum<equation = \"ij,ij->ij\">(n, s)"),
            "dense<[[10, 40, 90], [40, 100, 180]]> : tensor<2x3xi64>");
  EXPECT_EQ(valueOf(row + "y = Einsum<equation = \"...,...->...\">(s, n)"),
            "dense<[[10, 40, 90], [40, 100, 180]]> : tensor<2x3xi64>");
  EXPECT_THAT(
      irOfBody("float[2, 4, 1] x, float[1, 4, 3] w", "y = Einsum<equation = \"bij,bij->b\">(x, w)"),
      HasSubstr("-> (tensor<2xf32>"));
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

TEST(Fourier, LengthsAndParts) {
  // Values are those of ONNX's node tests; here is what the matrix multiplies.
  auto transformed = [](const std::string& input, const std::string& attributes, int length) {
    return irOfBody(input, "l = Constant<value_int = " + std::to_string(length) + ">()\n y = DFT<" +
                               attributes + ">(x, l, one)");
  };
  EXPECT_THAT(transformed("float[1, 6, 1] x", "onesided = 1", 4),
              AllOf(HasSubstr("tensor<4x6xf32>"), HasSubstr("-> (tensor<1x3x2xf32>")));
  EXPECT_THAT(transformed("float[1, 6, 1] x", "onesided = 0", 8),
              AllOf(HasSubstr("tensor<6x16xf32>"), HasSubstr("-> (tensor<1x8x2xf32>")));
  EXPECT_THAT(transformed("float[1, 4, 2] x", "onesided = 1, inverse = 1", 7),
              AllOf(HasSubstr("tensor<8x7xf32>"), HasSubstr("-> (tensor<1x7x1xf32>")));
  EXPECT_THAT(irOfBody("float[2, 8, 3] x", "y = DFT(x, , one)"),
              HasSubstr("the last one a real or a real and an imaginary part"));
  EXPECT_THAT(irOfBody("float[2, 8, 2] x", "y = DFT(x, , two)"),
              HasSubstr("along the dimension of real and imaginary parts"));
  EXPECT_THAT(irOfBody("float[2, 8, 2] x", "y = DFT<onesided = 1>(x, , one)"),
              HasSubstr("has one side of the spectrum of"));
  EXPECT_THAT(irOfBody("float[2, 8, 1] x", "y = DFT(x, zero, one)"),
              HasSubstr("transforms 0 elements"));
  EXPECT_THAT(
      irOfBody("float[2, 8, 1] x", "none = Slice(x, zero, zero, one)\n y = DFT(none, two, one)"),
      HasSubstr("which has no elements"));
  EXPECT_THAT(irOfBody("float[1, 1, 2] x", "y = DFT<inverse = 1, onesided = 1>(x, , one)"),
              HasSubstr("transforms 0 elements"));
  EXPECT_THAT(irOfBody("float[2, 1000000, 1] x", "y = DFT(x, , one)"),
              HasSubstr("compute it in front of the model"));
}

TEST(Fourier, PiecesOfASignal) {
  EXPECT_THAT(irOfBody("float[2, 16, 1] x, float[4] w", "y = STFT(x, two, w)"),
              HasSubstr("-> (tensor<2x7x3x2xf32>"));
  EXPECT_THAT(irOfBody("float[2, 16, 1] x, float[4] w",
                       "l = Constant<value_int = 8>()\n y = STFT(x, two, w, l)"),
              HasSubstr("a window of 4 elements for pieces of 8"));
  EXPECT_THAT(irOfBody("float[2, 16, 2] x, float[4] w", "y = STFT(x, two, w)"),
              HasSubstr("-> (tensor<2x7x3x2xf32>"));
  EXPECT_THAT(irOfBody("float[2, 16, 1] x, float[4] w", "y = STFT(x, zero, w)"),
              HasSubstr("cuts pieces of 4 elements, one every 0, out of 16"));
  EXPECT_THAT(irOfBody("float[1, 60000000, 1] x, float[4] w", "y = STFT(x, one, w)"),
              HasSubstr("compute it in front of the model"));
  EXPECT_THAT(irOfBody("float[16] x", "y = STFT(x, two)"), HasSubstr("floats of 3 dimensions"));
  EXPECT_THAT(irOfBody("float[2, 16, 1] x, float w", "y = STFT(x, two, w)"),
              HasSubstr("a window a vector"));
}

TEST(Recurrent, WhatIsRefused) {
  auto lstm = [](const std::string& attributes, const std::string& lengths = "") {
    return irOfBody("float[5, 2, 3] x, float[1, 16, 3] w, float[1, 16, 4] r, int32[2] l",
                    "same = Constant<value = int32[2] {5, 5}>()\n"
                    "short = Constant<value = int32[2] {5, 3}>()\n"
                    "y = LSTM<hidden_size = 4" +
                        attributes + ">(x, w, r, , " + lengths + ")");
  };
  EXPECT_THAT(lstm(""), HasSubstr("-> (tensor<5x1x2x4xf32>"));
  EXPECT_THAT(lstm("", "same"), HasSubstr("-> (tensor<5x1x2x4xf32>"));
  EXPECT_THAT(lstm("", "short"),
              HasSubstr("has sequence_lens other than 5 positions for each of 2 samples"));
  EXPECT_THAT(lstm("", "two"), HasSubstr("has sequence_lens other than"));
  EXPECT_THAT(lstm("", "l"), HasSubstr("operand 4"));
  EXPECT_THAT(lstm(", activations = [\"Sigmoid\", \"Tanh\"]"),
              HasSubstr("has 2 activations, expected 3"));
  EXPECT_THAT(lstm(", direction = \"backward\""), HasSubstr("the direction \"backward\""));
  EXPECT_THAT(lstm(", direction = \"bidirectional\""),
              HasSubstr("don't fit 2 directions, 4 gates, 3 inputs and 4 hidden elements"));
  EXPECT_THAT(lstm(", activations = [\"Sigmoid\", \"Tanh\", \"Affine\"]"),
              HasSubstr("has the activation \"Affine\""));
  EXPECT_THAT(lstm(", activations = [\"Sigmoid\"]"), HasSubstr("has 1 activations, expected 3"));
  EXPECT_THAT(lstm(", clip = 1.0"), HasSubstr("has clip"));
  EXPECT_THAT(lstm(", input_forget = 1"), HasSubstr("couples input and forget gates"));
  EXPECT_THAT(irOfBody("float[5, 2, 3] x, float[1, 4, 3] w, float[1, 4, 4] r",
                       "y = RNN<hidden_size = 5>(x, w, r)"),
              HasSubstr("has the hidden_size 5, and a recurrence weight for 4"));
  EXPECT_THAT(irOfBody("float[5, 2, 3] x, float[1, 4, 3] w, float[1, 4, 4] r",
                       "y = RNN<activations = [\"Tanh\", \"Tanh\"]>(x, w, r)"),
              HasSubstr("-> (tensor<5x1x2x4xf32>"));
  EXPECT_THAT(irOfBody("float[1, 1099511627776, 1] x, float[1, 1048576, 1] w, "
                       "float[1, 1048576, 1048576] r",
                       "y = RNN(x, w, r)"),
              HasSubstr("[1099511627776, 1048576], which has more than"));
  EXPECT_THAT(irOfBody("float[2000, 2, 3] x, float[1, 12, 3] w, float[1, 12, 4] r",
                       "y = GRU<hidden_size = 4>(x, w, r)"),
              HasSubstr("takes 2000 turns"));
}

}  // namespace
}  // namespace oriel
