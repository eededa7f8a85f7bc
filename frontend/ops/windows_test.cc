// Importers of pools and of resizing. Where operands are constants the result folds, so the value
// shows that the import means what ONNX says; elsewhere the ops that were made do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/testing.h"

namespace oriel {
namespace {

using ::testing::HasSubstr;
using testing::irOfBody;
using testing::opsOfBody;
using testing::valueOf;

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

// Two elements of each of three windows: 1 -2 3 are the first ones, -4 5 -6 the second ones.
std::string folded(const std::string& image, const std::string& attributes) {
  return valueOf(
      "s = Constant<value_ints = [1, 2, 3]>()\n t = Reshape(f, s)\n"
      "image = Constant<value_ints = [" +
      image +
      "]>()\n block = Constant<value_ints = [1, 2]>()\n"
      "y = Col2Im<" +
      attributes + ">(t, image, block)");
}

TEST(Fold, AddsWhereWindowsOverlap) {
  EXPECT_EQ(folded("1, 4", "strides = [1, 1]"),
            "dense<[[[[1.000000e+00, -6.000000e+00, 8.000000e+00, -6.000000e+00]]]]> : "
            "tensor<1x1x1x4xf32>");
  // Two apart, and what is put into the padding is lost.
  EXPECT_EQ(folded("1, 3", "dilations = [1, 2], pads = [0, 1, 0, 1]"),
            "dense<[[[[-2.000000e+00, -1.000000e+00, 5.000000e+00]]]]> : tensor<1x1x1x3xf32>");
}

TEST(Fold, TilesSideBySide) {
  EXPECT_EQ(folded("1, 6", "strides = [1, 2]"),
            "dense<[[[[1.000000e+00, -4.000000e+00, -2.000000e+00, 5.000000e+00, 3.000000e+00, "
            "-6.000000e+00]]]]> : tensor<1x1x1x6xf32>");
  // The last element is in no window.
  EXPECT_EQ(folded("1, 7", "strides = [1, 2]"),
            "dense<[[[[1.000000e+00, -4.000000e+00, -2.000000e+00, 5.000000e+00, 3.000000e+00, "
            "-6.000000e+00, 0.000000e+00]]]]> : tensor<1x1x1x7xf32>");
}

TEST(Fold, WindowsThatDontFit) {
  EXPECT_THAT(folded("1, 5", "strides = [1, 1]"), HasSubstr("for 4 windows of 2 elements"));
  EXPECT_THAT(folded("4", "strides = [1]"), HasSubstr("one positive kernel size"));
  EXPECT_THAT(folded("1, -4", "strides = [1, 1]"), HasSubstr("into an image of 2 dimensions"));
  EXPECT_THAT(folded("1, 1", "strides = [1, 1]"), HasSubstr("a window of 2 over 1 elements"));
  EXPECT_THAT(irOfBody("float[2, 4] x, int64[2] image",
                       "block = Constant<value_ints = [1, 2]>()\n y = Col2Im(x, image, block)"),
              HasSubstr("operand 1"));
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

}  // namespace
}  // namespace oriel
