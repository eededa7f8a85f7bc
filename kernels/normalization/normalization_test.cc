#include "kernels/normalization/normalization.h"

#include <cmath>
#include <limits>

#include "kernels/testing.h"

namespace oriel::kernels {
namespace {

using testing::Attributes;
using testing::ExpectClose;
using testing::kFloats;
using testing::kFloatsAndBF16;
using testing::RunKernel;
using testing::Tensor;
using Values = std::vector<double>;

constexpr double kEpsilon = 1e-5;

struct Size {
  int64_t rows, n;
};
// One block of rows and several, lengths with and without a tail; and what kernels of a GPU take in
// parts of a warp, in warps, in a block, and in more than a block holds.
const Size kSizes[] = {{1, 1},    {6, 5},    {300, 64}, {3000, 37}, {300, 128},
                       {33, 768}, {5, 1301}, {5, 2048}, {3, 5120},  {2, 8200}};

struct Norm {
  Values y, shift, scale;
};
// Normalisation with (layer) or without (rms) the mean taken off.
Norm Normalize(const Values& x, const Values& w, const Values& b, int64_t rows, int64_t n,
               bool layer) {
  Norm out{Values(x.size()), Values(rows), Values(rows)};
  for (int64_t r = 0; r < rows; ++r) {
    double mean = 0, squares = 0;
    if (layer) {
      for (int64_t i = 0; i < n; ++i) mean += x[r * n + i] / n;
    }
    for (int64_t i = 0; i < n; ++i) squares += std::pow(x[r * n + i] - mean, 2) / n;
    out.shift[r] = mean;
    out.scale[r] = 1 / std::sqrt(squares + kEpsilon);
    for (int64_t i = 0; i < n; ++i) {
      out.y[r * n + i] = (x[r * n + i] - mean) * out.scale[r] * w[i] + (b.empty() ? 0 : b[i]);
    }
  }
  return out;
}

struct NormGrad {
  Values dx, dw, db;
};
NormGrad Gradient(const Values& dy, const Values& x, const Values& w, const Norm& norm,
                  int64_t rows, int64_t n, bool layer) {
  NormGrad out{Values(x.size()), Values(n), Values(n)};
  for (int64_t r = 0; r < rows; ++r) {
    double avg_g = 0, avg_gx = 0;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = r * n + i;
      const double normed = (x[at] - norm.shift[r]) * norm.scale[r];
      avg_g += layer ? dy[at] * w[i] / n : 0;
      avg_gx += dy[at] * w[i] * normed / n;
      out.dw[i] += dy[at] * normed;
      out.db[i] += dy[at];
    }
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = r * n + i;
      const double normed = (x[at] - norm.shift[r]) * norm.scale[r];
      out.dx[at] = norm.scale[r] * (dy[at] * w[i] - avg_g - normed * avg_gx);
    }
  }
  return out;
}

Values SumOf(const Values& a, const Values& b) {
  Values sum = a;
  for (size_t i = 0; i < a.size(); ++i) sum[i] += b[i];
  return sum;
}

TEST(NormalizationTest, LayerNorm) {
  for (DType dtype : kFloats) {
    for (const Size& s : kSizes) {
      for (bool has_bias : {true, false}) {
        const Shape rows = {s.rows, 1};
        const Tensor x = Tensor::Random(dtype, {s.rows, 1, s.n}, 1, -2, 3);
        const Tensor w = Tensor::Random(dtype, {s.n}, 2), b = Tensor::Random(dtype, {s.n}, 3);
        std::vector<Tensor> operands = {x, w};
        if (has_bias) operands.push_back(b);
        const Norm expected =
            Normalize(x.values(), w.values(), has_bias ? b.values() : Values(), s.rows, s.n, true);
        const auto results =
            RunKernel("layer_norm", operands, {x.spec(), {dtype, rows}, {dtype, rows}},
                      {{"epsilon", kEpsilon}});
        // One element has no variance, and its inverse square root is large.
        ExpectClose(results[0], expected.y);
        ExpectClose(results[1], expected.shift);
        ExpectClose(results[2], expected.scale);
      }
    }
  }
}

TEST(NormalizationTest, LayerNormGradient) {
  for (DType dtype : kFloatsAndBF16) {
    const DType small = dtype == DType::kBF16 ? DType::kF32 : dtype;
    for (const Size& s : kSizes) {
      if (s.n == 1) continue;  // 0, but for rounding times 1/sqrt(epsilon)
      const Tensor dy = Tensor::Random(dtype, {s.rows, s.n}, 4);
      const Tensor x = Tensor::Random(dtype, {s.rows, s.n}, 5, -2, 3);
      const Tensor w = Tensor::Random(small, {s.n}, 6);
      Norm norm = Normalize(x.values(), w.values(), {}, s.rows, s.n, true);
      const Tensor mean({small, {s.rows}}, norm.shift), inv_std({small, {s.rows}}, norm.scale);
      norm.shift = mean.values();
      norm.scale = inv_std.values();
      const NormGrad expected =
          Gradient(dy.values(), x.values(), w.values(), norm, s.rows, s.n, true);
      const auto results =
          RunKernel("layer_norm_grad", {dy, x, w, mean, inv_std}, {x.spec(), w.spec(), w.spec()});
      ExpectClose(results[0], expected.dx);
      ExpectClose(results[1], expected.dw, testing::kRowSumSlack);
      ExpectClose(results[2], expected.db, testing::kRowSumSlack);
      const Tensor addend = Tensor::Random(dtype, {s.rows, s.n}, 7);
      for (int in_place : {-1, 5}) {
        const auto sums = RunKernel("layer_norm_grad", {dy, x, w, mean, inv_std, addend},
                                    {x.spec(), w.spec(), w.spec()}, {}, in_place);
        ExpectClose(sums[0], SumOf(expected.dx, addend.values()));
        ExpectClose(sums[1], expected.dw, testing::kRowSumSlack);
        ExpectClose(sums[2], expected.db, testing::kRowSumSlack);
      }
    }
  }
}

// The norm is that of the sum as it is stored, in every bit, in a buffer of its own or in a
// summand's.
TEST(NormalizationTest, NormsOfSums) {
  for (DType dtype : kFloatsAndBF16) {
    const DType small = dtype == DType::kBF16 ? DType::kF32 : dtype;
    for (const Size& s : kSizes) {
      const Tensor x = Tensor::Random(dtype, {s.rows, s.n}, 1, -2, 3);
      const Tensor r = Tensor::Random(dtype, {s.rows, s.n}, 2, -1, 2);
      const Tensor w = Tensor::Random(small, {s.n}, 3), b = Tensor::Random(small, {s.n}, 4);
      const Tensor sum(x.spec(), SumOf(x.values(), r.values()));
      const runtime::TensorSpec rows{small, {s.rows}};
      const Attributes epsilon = {{"epsilon", kEpsilon}};
      for (bool has_bias : {true, false}) {
        std::vector<Tensor> operands = {x, r, w};
        if (has_bias) operands.push_back(b);
        const Norm expected = Normalize(sum.values(), w.values(), has_bias ? b.values() : Values(),
                                        s.rows, s.n, true);
        const auto results =
            RunKernel("add_layer_norm", operands, {x.spec(), rows, rows, x.spec()}, epsilon);
        ExpectClose(results[0], expected.y);
        ExpectClose(results[1], expected.shift);
        ExpectClose(results[2], expected.scale);
        EXPECT_EQ(results[3].values(), sum.values());
        operands.erase(operands.begin(), operands.begin() + 2);
        operands.insert(operands.begin(), sum);
        const auto unfused = RunKernel("layer_norm", operands, {x.spec(), rows, rows}, epsilon);
        for (int i = 0; i < 3; ++i) EXPECT_EQ(results[i].values(), unfused[i].values());
      }
      const Norm expected = Normalize(sum.values(), w.values(), {}, s.rows, s.n, false);
      const auto results =
          RunKernel("add_rms_norm", {x, r, w}, {x.spec(), rows, x.spec()}, epsilon);
      ExpectClose(results[0], expected.y);
      ExpectClose(results[1], expected.scale);
      EXPECT_EQ(results[2].values(), sum.values());
      const auto unfused = RunKernel("rms_norm", {sum, w}, {x.spec(), rows}, epsilon);
      for (int i = 0; i < 2; ++i) EXPECT_EQ(results[i].values(), unfused[i].values());
    }
  }
}

Tensor LessOne(const Tensor& weight) {
  Values values = weight.values();
  for (double& value : values) value -= 1;
  return Tensor(weight.spec(), values);
}

TEST(NormalizationTest, RmsNorm) {
  for (DType dtype : kFloats) {
    for (const Size& s : kSizes) {
      const Tensor x = Tensor::Random(dtype, {s.rows, s.n}, 7, -2, 3);
      const Tensor w = Tensor::Random(dtype, {s.n}, 8);
      const Norm expected = Normalize(x.values(), w.values(), {}, s.rows, s.n, false);
      const std::vector<runtime::TensorSpec> specs = {x.spec(), {dtype, {s.rows}}};
      const auto results = RunKernel("rms_norm", {x, w}, specs, {{"epsilon", kEpsilon}});
      ExpectClose(results[0], expected.y);
      ExpectClose(results[1], expected.scale);
      // The weight as its distance from 1.
      const auto offset = RunKernel("rms_norm", {x, LessOne(w)}, specs,
                                    {{"epsilon", kEpsilon}, {"weight_offset", 1.0}});
      ExpectClose(offset[0], expected.y, 4);
    }
  }
}

TEST(NormalizationTest, RmsNormGradient) {
  for (DType dtype : kFloatsAndBF16) {
    const DType small = dtype == DType::kBF16 ? DType::kF32 : dtype;
    for (const Size& s : kSizes) {
      const Tensor dy = Tensor::Random(dtype, {s.rows, s.n}, 9);
      const Tensor x = Tensor::Random(dtype, {s.rows, s.n}, 10, 0.5, 3);
      const Tensor w = Tensor::Random(small, {s.n}, 11);
      Norm norm = Normalize(x.values(), w.values(), {}, s.rows, s.n, false);
      const Tensor inv_rms({small, {s.rows}}, norm.scale);
      norm.scale = inv_rms.values();
      const NormGrad expected =
          Gradient(dy.values(), x.values(), w.values(), norm, s.rows, s.n, false);
      const auto results = RunKernel("rms_norm_grad", {dy, x, w, inv_rms}, {x.spec(), w.spec()});
      ExpectClose(results[0], expected.dx);
      ExpectClose(results[1], expected.dw, testing::kRowSumSlack);
      const auto offset = RunKernel("rms_norm_grad", {dy, x, LessOne(w), inv_rms},
                                    {x.spec(), w.spec()}, {{"weight_offset", 1.0}});
      ExpectClose(offset[0], expected.dx, 4);
      ExpectClose(offset[1], expected.dw, testing::kRowSumSlack);
      const Tensor addend = Tensor::Random(dtype, {s.rows, s.n}, 12);
      for (int in_place : {-1, 4}) {
        const auto sums = RunKernel("rms_norm_grad", {dy, x, w, inv_rms, addend},
                                    {x.spec(), w.spec()}, {}, in_place);
        ExpectClose(sums[0], SumOf(expected.dx, addend.values()));
        ExpectClose(sums[1], expected.dw, testing::kRowSumSlack);
      }
    }
  }
}

// x as [outer, n, inner] -> softmax over n.
Values Softmax(const Values& x, int64_t outer, int64_t n, int64_t inner) {
  Values y(x.size());
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t j = 0; j < inner; ++j) {
      const auto at = [&](int64_t i) { return (o * n + i) * inner + j; };
      double max = x[at(0)], sum = 0;
      for (int64_t i = 0; i < n; ++i) max = std::max(max, x[at(i)]);
      for (int64_t i = 0; i < n; ++i) sum += std::exp(x[at(i)] - max);
      for (int64_t i = 0; i < n; ++i) y[at(i)] = std::exp(x[at(i)] - max) / sum;
    }
  }
  return y;
}

TEST(NormalizationTest, SoftmaxAndGradient) {
  const struct {
    Shape shape;
    int64_t dim;
  } cases[] = {{{5}, 0}, {{300, 130}, 1}, {{7, 40, 13}, 1}, {{33, 1300}, 0}, {{4, 1}, 1}};
  for (DType dtype : kFloats) {
    for (const auto& c : cases) {
      const Tensor x = Tensor::Random(dtype, c.shape, 12, -8, 8);
      const Tensor dy = Tensor::Random(dtype, c.shape, 13);
      int64_t outer = 1, inner = 1;
      for (int64_t d = 0; d < static_cast<int64_t>(c.shape.size()); ++d) {
        if (d < c.dim) outer *= c.shape[d];
        if (d > c.dim) inner *= c.shape[d];
      }
      const int64_t n = c.shape[c.dim];
      const Values expected = Softmax(x.values(), outer, n, inner);
      const Attributes attributes = {{"dim", c.dim}};
      ExpectClose(RunKernel("softmax", {x}, {x.spec()}, attributes)[0], expected);
      ExpectClose(RunKernel("softmax", {x}, {x.spec()}, attributes, /*in_place=*/0)[0], expected);

      const Tensor y(x.spec(), expected);
      const Values yv = y.values(), dyv = dy.values();
      Values dx(yv.size());
      for (int64_t i = 0; i < x.size(); ++i) {
        const int64_t first = i / (n * inner) * n * inner + i % inner;
        double dot = 0;
        for (int64_t k = 0; k < n; ++k) dot += dyv[first + k * inner] * yv[first + k * inner];
        dx[i] = yv[i] * (dyv[i] - dot);
      }
      ExpectClose(RunKernel("softmax_grad", {dy, y}, {x.spec()}, attributes)[0], dx);
    }
  }
}

TEST(NormalizationTest, SoftmaxOfInfinities) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double nan = std::nan("");
  const Tensor x({DType::kF32, {3, 2}}, {-kInfinity, 1, -kInfinity, -kInfinity, nan, 1});
  ExpectClose(RunKernel("softmax", {x}, {x.spec()}, {{"dim", int64_t{1}}})[0],
              {0, 1, nan, nan, nan, nan});
}

}  // namespace
}  // namespace oriel::kernels
