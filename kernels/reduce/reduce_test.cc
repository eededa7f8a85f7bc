#include "kernels/reduce/reduce.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "kernels/testing.h"

namespace oriel::kernels {
namespace {

using testing::ColumnsOf;
using testing::ExpectClose;
using testing::kFloats;
using testing::RunKernel;
using testing::Tensor;
using testing::TryKernel;
using Ints = std::vector<int64_t>;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Reduction {
  const char* kernel;
  double start;
  std::function<double(double, double)> combine;
};
const Reduction kReductions[] = {
    {"reduce_sum", 0, [](double a, double b) { return a + b; }},
    {"reduce_mean", 0, [](double a, double b) { return a + b; }},
    {"reduce_max", -kInfinity, [](double a, double b) { return std::max(a, b); }},
    {"reduce_min", kInfinity, [](double a, double b) { return std::min(a, b); }},
    {"reduce_prod", 1, [](double a, double b) { return a * b; }},
};

struct Case {
  Shape shape;
  Ints dims;
};
const Case kCases[] = {
    {{7}, {0}},
    {{4, 100}, {1}},
    {{100, 4}, {0}},
    {{50, 1037}, {1}},
    {{50, 1037}, {0}},
    {{50, 1037}, {0, 1}},
    {{3, 40, 5}, {1}},
    {{3, 40, 300}, {1}},
    {{6, 40, 5}, {0, 2}},
    {{6, 40, 5}, {0, 1}},
    {{6, 4, 5, 3}, {1, 3}},
    {{6, 4, 5, 3}, {0, 2}},
    {{6, 4, 5}, {}},
    {{1, 4, 1}, {0, 2}},
    {{}, {}},
    // Cut into pieces on a device: rows, columns, both, and what is left of either.
    {{36011}, {0}},
    {{2, 20480}, {1}},
    {{2, 20481}, {1}},
    {{3, 700, 260}, {1}},
    {{2003, 3}, {0}},
    {{9, 3, 40, 50}, {0, 2, 3}},
    {{130, 8, 9}, {0, 2}},
    {{2, 3, 4, 5, 6, 2}, {0, 2, 4}},
};

// Shape of the result, and its values.
std::pair<Shape, std::vector<double>> Reference(const Reduction& r, const Tensor& x,
                                                const Ints& dims, bool keep) {
  const Shape& shape = x.shape();
  std::vector<bool> reduced(shape.size());
  for (int64_t d : dims) reduced[d] = true;
  Shape result;
  int64_t count = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (reduced[d]) count *= shape[d];
    if (!reduced[d] || keep) result.push_back(reduced[d] ? 1 : shape[d]);
  }
  std::vector<double> values(runtime::NumElements(result), r.start);
  const std::vector<double> in = x.values();
  for (int64_t i = 0; i < x.size(); ++i) {
    int64_t rest = i, at = 0, stride = 1;
    for (size_t d = shape.size(); d-- > 0;) {
      if (!reduced[d]) {
        at += rest % shape[d] * stride;
        stride *= shape[d];
      }
      rest /= shape[d];
    }
    values[at] = r.combine(values[at], in[i]);
  }
  if (r.kernel == std::string("reduce_mean")) {
    for (double& v : values) v /= static_cast<double>(count);
  }
  return {result, values};
}

TEST(ReduceTest, FloatsOverAnyDimensions) {
  for (const Reduction& r : kReductions) {
    for (const Case& c : kCases) {
      for (DType dtype : kFloats) {
        for (bool keep : {false, true}) {
          SCOPED_TRACE(r.kernel + runtime::ShapeToString(c.shape) + runtime::ShapeToString(c.dims));
          const bool product = r.kernel == std::string("reduce_prod");
          const Tensor x = Tensor::Random(dtype, c.shape, 1, product ? 0.9 : -1, product ? 1.1 : 1);
          const auto [shape, expected] = Reference(r, x, c.dims, keep);
          // f32 is off by the rounding of the result alone.
          ExpectClose(RunKernel(r.kernel, {x}, {{dtype, shape}},
                                {{"dims", c.dims}, {"keep_dims", int64_t{keep}}})[0],
                      expected, dtype == DType::kF32 ? 0.05 : 10);
        }
      }
    }
  }
}

TEST(ReduceTest, IntegersOverAnyDimensions) {
  for (const Reduction& r : kReductions) {
    for (const Case& c : kCases) {
      for (DType dtype : {DType::kI64, DType::kI32}) {
        if (r.kernel == std::string("reduce_prod") && runtime::NumElements(c.shape) > 30) continue;
        SCOPED_TRACE(r.kernel);
        const Tensor x = Tensor::Random(dtype, c.shape, 2, -3, 4);
        auto [shape, expected] = Reference(r, x, c.dims, false);
        for (double& v : expected) v = std::trunc(v);
        ExpectClose(RunKernel(r.kernel, {x}, {{dtype, shape}}, {{"dims", c.dims}})[0], expected);
      }
    }
  }
}

TEST(ReduceTest, SumsOfBF16AreWideUntilTheEnd) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(runtime::ShapeToString(c.shape) + runtime::ShapeToString(c.dims));
    const Tensor x = Tensor::Random(DType::kBF16, c.shape, 3);
    const auto [shape, expected] = Reference(kReductions[0], x, c.dims, false);
    for (DType to : {DType::kF32, DType::kBF16}) {
      ExpectClose(RunKernel("reduce_sum", {x}, {{to, shape}}, {{"dims", c.dims}})[0], expected,
                  to == DType::kF32 ? 0.05 : 1);
    }
  }
}

TEST(ReduceTest, NaNIsTheExtreme) {
  const Tensor x({DType::kF32, {2, 3}}, {1, kNaN, 3, 4, 5, 6});
  for (const char* kernel : {"reduce_max", "reduce_min"}) {
    const double other = kernel == std::string("reduce_max") ? 6 : 4;
    ExpectClose(RunKernel(kernel, {x}, {{DType::kF32, {2}}}, {{"dims", Ints{1}}})[0],
                {kNaN, other});
    std::vector<double> many(40000, 2);
    many[30000] = kNaN;
    ExpectClose(RunKernel(kernel, {Tensor({DType::kF32, {40000}}, many)}, {{DType::kF32, {}}},
                          {{"dims", Ints{0}}})[0],
                {kNaN});
  }
  ExpectClose(RunKernel("reduce_max", {x}, {{DType::kF32, {3}}}, {{"dims", Ints{0}}})[0],
              {4, kNaN, 6});
}

TEST(ReduceTest, BooleansHaveExtremes) {
  const Tensor x({DType::kBool, {2, 3}}, {0, 1, 0, 1, 1, 1});
  ExpectClose(RunKernel("reduce_max", {x}, {{DType::kBool, {2}}}, {{"dims", Ints{1}}})[0], {1, 1});
  ExpectClose(RunKernel("reduce_min", {x}, {{DType::kBool, {2}}}, {{"dims", Ints{1}}})[0], {0, 1});
  for (const Case& c : kCases) {
    Tensor few = Tensor::Random(DType::kBool, c.shape, 4, 0, 2);
    for (const Reduction& r : {kReductions[2], kReductions[3]}) {
      const auto [shape, expected] = Reference(r, few, c.dims, false);
      ExpectClose(RunKernel(r.kernel, {few}, {{DType::kBool, shape}}, {{"dims", c.dims}})[0],
                  expected);
    }
  }
}

TEST(ReduceTest, NoElementsGiveTheNeutralElement) {
  const Tensor x = Tensor::Random(DType::kF32, {3, 0}, 1);
  const auto run = [&](const char* kernel) {
    return RunKernel(kernel, {x}, {{DType::kF32, {3}}}, {{"dims", Ints{1}}})[0];
  };
  ExpectClose(run("reduce_sum"), {0, 0, 0});
  ExpectClose(run("reduce_prod"), {1, 1, 1});
  ExpectClose(run("reduce_max"), {-kInfinity, -kInfinity, -kInfinity});
}

TEST(ReduceTest, LongFloatSumsAreAccurate) {
  // 1e6 values of 0.1: a plain float sum is off by 1e-3.
  const Tensor x({DType::kF32, {1000000}}, std::vector<double>(1000000, 0.1f));
  ExpectClose(RunKernel("reduce_sum", {x}, {{DType::kF32, {}}}, {{"dims", Ints{0}}})[0],
              {1000000 * static_cast<double>(0.1f)}, 0.05);
}

TEST(ReduceTest, DimensionsOutsideAreInvalid) {
  const Tensor x = Tensor::Random(DType::kF32, {3}, 1);
  EXPECT_EQ(TryKernel("reduce_sum", {x}, {{DType::kF32, {}}}, {{"dims", Ints{1}}}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ScanTest, Cumsum) {
  for (DType dtype : {DType::kF32, DType::kF64, DType::kI64, DType::kI32}) {
    const std::pair<Shape, int64_t> cases[] = {{{20, 50, 40}, 0}, {{20, 50, 40}, 1},
                                               {{20, 50, 40}, 2}, {{2, 2600}, 1},
                                               {{2, 300, 5}, 1},  {{3, 70, 40}, 1}};
    for (const auto& [shape, dim] : cases) {
      for (int flags = 0; flags < 4; ++flags) {
        const bool exclusive = flags & 1, reverse = flags & 2;
        const Tensor x = Tensor::Random(dtype, shape, 3, -3, 4);
        const std::vector<double> in = x.values();
        std::vector<double> expected(in.size());
        int64_t inner = 1;
        for (size_t d = dim + 1; d < shape.size(); ++d) inner *= shape[d];
        const int64_t n = shape[dim];
        for (int64_t i = 0; i < x.size(); ++i) {
          const int64_t own = i / inner % n;
          for (int64_t j = 0; j < n; ++j) {
            const bool before = reverse ? j > own : j < own;
            if (before || (j == own && !exclusive)) expected[i] += in[i + (j - own) * inner];
          }
        }
        ExpectClose(RunKernel("cumsum", {x}, {x.spec()},
                              {{"dim", dim},
                               {"exclusive", int64_t{exclusive}},
                               {"reverse", int64_t{reverse}}})[0],
                    expected);
      }
    }
  }
}

TEST(ScanTest, CumsumOfWhatIsNotFinite) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  std::vector<double> in(200, 1);
  in[50] = kInf;
  in[120] = -kInf;
  const Tensor x({DType::kF32, {200}}, in);
  const std::vector<double> y =
      RunKernel("cumsum", {x}, {x.spec()}, {{"dim", int64_t{0}}})[0].values();
  for (int i = 0; i < 200; ++i) {
    if (i < 120) {
      EXPECT_EQ(y[i], i < 50 ? i + 1 : kInf) << i;
    } else {
      EXPECT_TRUE(std::isnan(y[i])) << i;
    }
  }
}

TEST(ScanTest, ArgmaxIsTheFirstLargest) {
  for (DType dtype : {DType::kF32, DType::kF64, DType::kI64, DType::kI32}) {
    for (DType index : {DType::kI64, DType::kI32}) {
      const Tensor x({dtype, {2, 3, 2}}, {1, 9, 4, 9, 4, 2, -1, -5, -7, -2, -1, -2});
      ExpectClose(RunKernel("argmax", {x}, {{index, {2, 2}}}, {{"dim", int64_t{1}}})[0],
                  {1, 0, 0, 1});
      ExpectClose(RunKernel("argmax", {x}, {{index, {2, 3, 1}}},
                            {{"dim", int64_t{2}}, {"keep_dims", int64_t{1}}})[0],
                  {1, 1, 0, 0, 1, 0});
    }
  }
  const Tensor nan({DType::kF32, {4}}, {1, kNaN, 5, kNaN});
  ExpectClose(RunKernel("argmax", {nan}, {{DType::kI64, {}}}, {{"dim", int64_t{0}}})[0], {1});
}

// Lines of whole packs, of one more, and such that are not contiguous.
TEST(ScanTest, ArgmaxOfLongLines) {
  for (DType dtype : {DType::kF32, DType::kF64, DType::kBF16, DType::kI64, DType::kI32}) {
    for (int64_t n : {4096, 4097}) {
      for (int64_t dim : {0, 1}) {
        const Shape shape = dim == 1 ? Shape{3, n} : Shape{n, 3};
        Tensor x = Tensor::Random(dtype, shape, 6, -50, 50);  // many are equal
        const std::vector<double> values = x.values();
        std::vector<double> best(3), least;
        for (int64_t line = 0; line < 3; ++line) {
          const auto at = [&](int64_t i) { return values[dim == 1 ? line * n + i : i * 3 + line]; };
          std::vector<int64_t> order(n);
          for (int64_t i = 0; i < n; ++i) {
            order[i] = i;
            if (at(i) > at(static_cast<int64_t>(best[line]))) best[line] = static_cast<double>(i);
          }
          std::stable_sort(order.begin(), order.end(),
                           [&](int64_t a, int64_t b) { return at(a) < at(b); });
          least.insert(least.end(), order.begin(), order.begin() + 4);
        }
        ExpectClose(RunKernel("argmax", {x}, {{DType::kI64, {3}}}, {{"dim", dim}})[0], best);
        if (dim == 0) continue;
        ExpectClose(RunKernel("topk", {x}, {{DType::kI64, {3, 4}}},
                              {{"k", int64_t{4}}, {"dim", dim}, {"largest", int64_t{0}}})[0],
                    least);
      }
    }
  }
}

TEST(ScanTest, RemainingFromTheFirstEqual) {
  for (DType dtype : {DType::kF32, DType::kF64, DType::kBF16}) {
    const Tensor x({dtype, {2, 2, 3}}, {1, 9, 9, kNaN, 4, kNaN, 2, -1, 0, 5, 5, 5});
    const Tensor values({dtype, {2, 2}}, {9, kNaN, 7, 5});
    const TensorSpec result = {DType::kI64, {2, 2}};
    ExpectClose(RunKernel("remaining_from", {x, values}, {result})[0], {2, 3, 0, 3});
    const Tensor first = Tensor::Scalar(DType::kI64, 4);
    ExpectClose(
        RunKernel("remaining_from", {x, values, first}, {result}, {{"size", int64_t{10}}})[0],
        {5, 6, 0, 6});
    EXPECT_FALSE(
        TryKernel("remaining_from", {x, values, first}, {result}, {{"size", int64_t{6}}}).ok());
  }
}

// The place of the largest, piece by piece, is the argmax.
TEST(ScanTest, RemainingFromJoinsPieces) {
  const Tensor x = Tensor::Random(DType::kBF16, {65, 1037}, 1, -1, 1);  // many are equal
  const TensorSpec places = {DType::kI64, {65}};
  const Tensor best = RunKernel("argmax", {x}, {places}, {{"dim", int64_t{1}}})[0];
  const Tensor max = RunKernel("reduce_max", {x}, {{DType::kBF16, {65}}}, {{"dims", Shape{1}}})[0];
  std::vector<double> index(65, 1037);
  const int64_t cuts[] = {0, 300, 1037};
  for (int k = 0; k < 2; ++k) {
    const Tensor first = Tensor::Scalar(DType::kI64, static_cast<double>(cuts[k]));
    const std::vector<double> own =
        RunKernel("remaining_from", {ColumnsOf(x, cuts[k], cuts[k + 1] - cuts[k]), max, first},
                  {places}, {{"size", int64_t{1037}}})[0]
            .values();
    for (size_t row = 0; row < own.size(); ++row) {
      index[row] = std::min(index[row], 1037 - own[row]);
    }
  }
  EXPECT_EQ(best.values(), index);
}

TEST(TopkTest, OrdersEqualElementsByIndex) {
  for (DType dtype : {DType::kF32, DType::kF64, DType::kI64, DType::kI32}) {
    const Tensor x({dtype, {2, 4}}, {3, 1, 3, 2, -1, 5, 0, 5});
    ExpectClose(RunKernel("topk", {x}, {{DType::kI64, {2, 3}}},
                          {{"k", int64_t{3}}, {"dim", int64_t{1}}})[0],
                {0, 2, 3, 1, 3, 2});
    ExpectClose(RunKernel("topk", {x}, {{DType::kI64, {1, 4}}},
                          {{"k", int64_t{1}}, {"dim", int64_t{0}}, {"largest", int64_t{0}}})[0],
                {1, 0, 1, 0});
  }
}

TEST(TopkTest, NaNIsTheLargest) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor x({DType::kF32, {3}}, {1, nan, 2});
  ExpectClose(
      RunKernel("topk", {x}, {{DType::kI64, {3}}}, {{"k", int64_t{3}}, {"dim", int64_t{0}}})[0],
      {1, 2, 0});
}

}  // namespace
}  // namespace oriel::kernels
