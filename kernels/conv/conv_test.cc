#include "kernels/conv/conv.h"

#include "kernels/testing.h"

namespace oriel::kernels {
namespace {

using testing::Attributes;
using testing::ExpectClose;
using testing::kFloats;
using testing::RunKernel;
using testing::Tensor;
using testing::TryKernel;
using Ints = std::vector<int64_t>;
using Values = std::vector<double>;

struct Case {
  const char* name;
  Shape input, weight;
  Ints strides, pads, dilations;
  int64_t group = 1;
};

const Case kCases[] = {
    {"patches", {3, 3, 28, 28}, {20, 3, 4, 4}, {4, 4}, {0, 0, 0, 0}, {1, 1}},
    {"3x3, padded", {2, 5, 9, 11}, {7, 5, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}},
    {"uneven pads, strides and dilations",
     {2, 4, 13, 10},
     {6, 4, 3, 2},
     {2, 1},
     {2, 0, 1, 3},
     {2, 3}},
    {"groups", {2, 6, 8, 8}, {9, 2, 3, 3}, {1, 2}, {1, 1, 1, 1}, {1, 1}, 3},
    {"depthwise", {2, 4, 8, 8}, {4, 1, 3, 3}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 4},
    {"depthwise, causal", {3, 70, 37}, {70, 1, 4}, {1}, {3, 0}, {1}, 70},
    {"depthwise, strides, pads and dilations",
     {2, 5, 9, 11},
     {5, 1, 3, 2},
     {2, 3},
     {2, 0, 1, 3},
     {2, 3},
     5},
    {"depthwise, three dimensions",
     {1, 3, 4, 5, 6},
     {3, 1, 3, 2, 3},
     {1, 2, 1},
     {1, 0, 2, 1, 1, 0},
     {1, 1, 2},
     3},
    {"depthwise, one output", {2, 4, 3, 3}, {4, 1, 3, 3}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 4},
    {"one dimension", {2, 3, 20}, {5, 3, 4}, {2}, {1, 2}, {1}},
    {"three dimensions",
     {2, 2, 5, 6, 7},
     {3, 2, 2, 3, 2},
     {1, 2, 1},
     {1, 0, 1, 0, 1, 0},
     {1, 1, 2}},
    {"pads wider than the kernel", {1, 1, 2, 2}, {1, 1, 1, 2}, {1, 1}, {3, 3, 3, 3}, {1, 1}},
    {"large enough for threads", {2, 8, 30, 30}, {70, 8, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}},
};

Shape OutputShape(const Case& c) {
  const size_t dims = c.strides.size();
  Shape output = {c.input[0], c.weight[0]};
  for (size_t i = 0; i < dims; ++i) {
    output.push_back((c.input[2 + i] + c.pads[i] + c.pads[dims + i] -
                      c.dilations[i] * (c.weight[2 + i] - 1) - 1) /
                         c.strides[i] +
                     1);
  }
  return output;
}

// Calls f(input element, weight element, output element) for every product of the convolution.
template <typename F>
void ForEachProduct(const Case& c, const F& f) {
  const size_t dims = c.strides.size();
  const Shape output = OutputShape(c);
  const int64_t outputs = c.weight[0] / c.group;
  Shape space = output;  // output positions, then the weight's channel and kernel
  space.insert(space.end(), c.weight.begin() + 1, c.weight.end());
  for (int64_t i = 0; i < runtime::NumElements(space); ++i) {
    Ints index(space.size());
    int64_t rest = i;
    for (size_t d = space.size(); d-- > 0;) {
      index[d] = rest % space[d];
      rest /= space[d];
    }
    const int64_t channel = index[1] / outputs * c.weight[1] + index[2 + dims];
    int64_t in = index[0] * c.input[1] + channel;
    int64_t weight = index[1] * c.weight[1] + index[2 + dims];
    int64_t out = index[0] * output[1] + index[1];
    bool inside = true;
    for (size_t d = 0; d < dims; ++d) {
      const int64_t at =
          index[2 + d] * c.strides[d] - c.pads[d] + index[3 + dims + d] * c.dilations[d];
      inside = inside && at >= 0 && at < c.input[2 + d];
      in = in * c.input[2 + d] + at;
      weight = weight * c.weight[2 + d] + index[3 + dims + d];
      out = out * output[2 + d] + index[2 + d];
    }
    if (inside) f(in, weight, out);
  }
}

Attributes AttributesOf(const Case& c) {
  return {{"strides", c.strides}, {"pads", c.pads}, {"dilations", c.dilations}, {"group", c.group}};
}

TEST(ConvTest, ForwardAndGradients) {
  for (const Case& c : kCases) {
    for (DType dtype : kFloats) {
      SCOPED_TRACE(c.name);
      const Shape output = OutputShape(c);
      const Tensor x = Tensor::Random(dtype, c.input, 1), w = Tensor::Random(dtype, c.weight, 2);
      const Tensor bias = Tensor::Random(dtype, {c.weight[0]}, 3),
                   dy = Tensor::Random(dtype, output, 4);
      const Values xv = x.values(), wv = w.values(), bv = bias.values(), dyv = dy.values();
      Values y(dyv.size()), dx(xv.size()), dw(wv.size());
      ForEachProduct(c, [&](int64_t in, int64_t weight, int64_t out) {
        y[out] += xv[in] * wv[weight];
        dx[in] += dyv[out] * wv[weight];
        dw[weight] += dyv[out] * xv[in];
      });
      const Attributes attributes = AttributesOf(c);
      ExpectClose(RunKernel("conv", {x, w}, {dy.spec()}, attributes)[0], y, 5);
      ExpectClose(RunKernel("conv_input_grad", {dy, w}, {x.spec()}, attributes)[0], dx, 5);
      ExpectClose(RunKernel("conv_weight_grad", {dy, x}, {w.spec()}, attributes)[0], dw, 10);
      const int64_t positions = dy.size() / output[0] / output[1];
      for (size_t i = 0; i < y.size(); ++i) y[i] += bv[i / positions % output[1]];
      ExpectClose(RunKernel("conv", {x, w, bias}, {dy.spec()}, attributes)[0], y, 5);
    }
  }
}

// Sums of bf16 products are taken in f32, and rounded once where the result is bf16.
TEST(ConvTest, BFloat16) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const Shape output = OutputShape(c);
    const Tensor x = Tensor::Random(DType::kBF16, c.input, 1);
    const Tensor w = Tensor::Random(DType::kBF16, c.weight, 2);
    const Tensor bias = Tensor::Random(DType::kBF16, {c.weight[0]}, 3);
    const Tensor dy = Tensor::Random(DType::kBF16, output, 4);
    const Values xv = x.values(), wv = w.values(), bv = bias.values(), dyv = dy.values();
    Values y(dyv.size()), dx(xv.size()), dw(wv.size());
    const int64_t positions = dy.size() / output[0] / output[1];
    for (size_t i = 0; i < y.size(); ++i) y[i] = bv[i / positions % output[1]];
    ForEachProduct(c, [&](int64_t in, int64_t weight, int64_t out) {
      y[out] += xv[in] * wv[weight];
      dx[in] += dyv[out] * wv[weight];
      dw[weight] += dyv[out] * xv[in];
    });
    const Attributes attributes = AttributesOf(c);
    for (DType result : {DType::kBF16, DType::kF32}) {
      ExpectClose(RunKernel("conv", {x, w, bias}, {{result, output}}, attributes)[0], y, 5);
      ExpectClose(RunKernel("conv_input_grad", {dy, w}, {{result, c.input}}, attributes)[0], dx, 5);
      ExpectClose(RunKernel("conv_weight_grad", {dy, x}, {{result, c.weight}}, attributes)[0], dw,
                  10);
    }
  }
}

TEST(ConvTest, WrongOutputSizeIsInvalid) {
  const Case& c = kCases[0];
  const Tensor x = Tensor::Random(DType::kF32, c.input, 1),
               w = Tensor::Random(DType::kF32, c.weight, 2);
  EXPECT_EQ(
      TryKernel("conv", {x, w}, {{DType::kF32, {3, 20, 7, 8}}}, AttributesOf(c)).status().code(),
      absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace oriel::kernels
