#include "kernels/linear/linear.h"

#include "kernels/testing.h"
#include "runtime/base/status_testing.h"

namespace oriel::kernels {
namespace {

using testing::Attributes;
using testing::ExpectClose;
using testing::kFloatsAndBF16;
using testing::RunKernel;
using testing::Tensor;
using testing::TryKernel;

// a [m, k], or [k, m] if `ta`; b [k, n], or [n, k] if `tb`.
std::vector<double> Product(const std::vector<double>& a, const std::vector<double>& b,
                            int64_t batch, int64_t m, int64_t n, int64_t k, bool ta, bool tb) {
  std::vector<double> c(batch * m * n);
  for (int64_t s = 0; s < batch; ++s) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t p = 0; p < k; ++p) {
          sum += a[s * m * k + (ta ? p * m + i : i * k + p)] *
                 b[s * k * n + (tb ? j * k + p : p * n + j)];
        }
        c[(s * m + i) * n + j] = sum;
      }
    }
  }
  return c;
}

struct Size {
  int64_t m, n, k;
};
// Small, odd, and large enough for several panels in either direction.
const Size kSizes[] = {{1, 1, 1},    {3, 5, 7},      {64, 48, 16},
                       {33, 17, 65}, {300, 130, 70}, {70, 300, 200}};

TEST(LinearTest, MatmulInAllLayouts) {
  for (DType dtype : kFloatsAndBF16) {
    for (const Size& s : kSizes) {
      for (int flags = 0; flags < 4; ++flags) {
        for (const Shape& batch : {Shape{}, Shape{3}, Shape{2, 5}}) {
          if (s.m * s.n > 10000 && batch.size() == 2) continue;
          const bool ta = flags & 1, tb = flags & 2;
          SCOPED_TRACE(::testing::Message() << s.m << "x" << s.n << "x" << s.k << ta << tb);
          Shape lhs = batch, rhs = batch, result = batch;
          for (int64_t d : ta ? Shape{s.k, s.m} : Shape{s.m, s.k}) lhs.push_back(d);
          for (int64_t d : tb ? Shape{s.n, s.k} : Shape{s.k, s.n}) rhs.push_back(d);
          for (int64_t d : Shape{s.m, s.n}) result.push_back(d);
          const Tensor a = Tensor::Random(dtype, lhs, 1), b = Tensor::Random(dtype, rhs, 2);
          const Attributes attributes = {{"transpose_lhs", int64_t{ta}},
                                         {"transpose_rhs", int64_t{tb}}};
          const std::vector<double> expected =
              Product(a.values(), b.values(), runtime::NumElements(batch), s.m, s.n, s.k, ta, tb);
          ExpectClose(RunKernel("matmul", {a, b}, {{dtype, result}}, attributes)[0], expected, 5);
        }
      }
    }
  }
}

// Several dimensions of rows, columns and summands are one, in each layout.
TEST(LinearTest, MatmulOfSeveralDims) {
  const Shape batch = {2}, m = {3, 2}, k = {4, 5}, n = {2, 7};
  const auto joined = [&](const Shape& first, const Shape& second) {
    Shape all = batch;
    all.insert(all.end(), first.begin(), first.end());
    all.insert(all.end(), second.begin(), second.end());
    return all;
  };
  for (int flags = 0; flags < 4; ++flags) {
    const bool ta = flags & 1, tb = flags & 2;
    SCOPED_TRACE(::testing::Message() << ta << tb);
    const Tensor a = Tensor::Random(DType::kF32, ta ? joined(k, m) : joined(m, k), 1);
    const Tensor b = Tensor::Random(DType::kF32, tb ? joined(n, k) : joined(k, n), 2);
    const Attributes attributes = {{"transpose_lhs", int64_t{ta}},
                                   {"transpose_rhs", int64_t{tb}},
                                   {"row_dims", int64_t{2}},
                                   {"sum_dims", int64_t{2}},
                                   {"column_dims", int64_t{2}}};
    ExpectClose(RunKernel("matmul", {a, b}, {{DType::kF32, joined(m, n)}}, attributes)[0],
                Product(a.values(), b.values(), 2, 6, 14, 20, ta, tb), 5);
  }
}

TEST(LinearTest, MatmulOfDimsThatAreNotThere) {
  const TensorSpec x{DType::kF32, {2, 2}};
  for (const char* name : {"row_dims", "sum_dims", "column_dims"}) {
    for (int64_t count : {int64_t{0}, int64_t{-1}, int64_t{2}, int64_t{1} << 62}) {
      KernelSpec spec;
      spec.kernel = "matmul";
      spec.operands = {x, x};
      spec.results = {x};
      spec.attributes = {{name, count}};
      EXPECT_THAT(MatmulShape(spec), runtime::StatusIs(absl::StatusCode::kInvalidArgument,
                                                       ::testing::HasSubstr("ranks don't fit")))
          << name << " " << count;
    }
  }
}

TEST(LinearTest, LinearWithAndWithoutBias) {
  for (DType dtype : kFloatsAndBF16) {
    for (const Size& s : kSizes) {
      for (int flags = 0; flags < 4; ++flags) {
        const bool transposed = flags & 1, has_bias = flags & 2;
        SCOPED_TRACE(::testing::Message()
                     << s.m << "x" << s.n << "x" << s.k << transposed << has_bias);
        const Tensor x = Tensor::Random(dtype, {2, s.m, s.k}, 1);
        const Tensor w = Tensor::Random(dtype, transposed ? Shape{s.n, s.k} : Shape{s.k, s.n}, 2);
        const Tensor b = Tensor::Random(dtype, {s.n}, 3);
        std::vector<double> expected =
            Product(x.values(), w.values(), 1, 2 * s.m, s.n, s.k, false, transposed);
        const std::vector<double> bias = b.values();
        std::vector<Tensor> operands = {x, w};
        if (has_bias) {
          operands.push_back(b);
          for (size_t i = 0; i < expected.size(); ++i) expected[i] += bias[i % s.n];
        }
        ExpectClose(RunKernel("linear", operands, {{dtype, {2, s.m, s.n}}},
                              {{"transpose_weight", int64_t{transposed}}})[0],
                    expected, 5);
      }
    }
  }
}

// In the addend's place and apart from it.
TEST(LinearTest, LinearPlusAnAddend) {
  for (DType dtype : kFloatsAndBF16) {
    for (const Size& s : kSizes) {
      for (int flags = 0; flags < 4; ++flags) {
        const bool transposed = flags & 1, has_bias = flags & 2;
        SCOPED_TRACE(::testing::Message()
                     << s.m << "x" << s.n << "x" << s.k << transposed << has_bias);
        std::vector<Tensor> operands = {
            Tensor::Random(dtype, {2, s.m, s.k}, 1),
            Tensor::Random(dtype, transposed ? Shape{s.n, s.k} : Shape{s.k, s.n}, 2)};
        const Tensor bias = Tensor::Random(dtype, {s.n}, 3);
        if (has_bias) operands.push_back(bias);
        const Tensor addend = Tensor::Random(dtype, {2, s.m, s.n}, 4);
        std::vector<double> expected = Product(operands[0].values(), operands[1].values(), 1,
                                               2 * s.m, s.n, s.k, false, transposed);
        const std::vector<double> b = bias.values(), c = addend.values();
        for (size_t i = 0; i < expected.size(); ++i) {
          expected[i] += c[i] + (has_bias ? b[i % s.n] : 0);
        }
        operands.push_back(addend);
        const Attributes attributes = {{"transpose_weight", int64_t{transposed}}};
        const int last = static_cast<int>(operands.size()) - 1;
        for (int in_place : {-1, last}) {
          ExpectClose(RunKernel("linear_add", operands, {addend.spec()}, attributes, in_place)[0],
                      expected, 5);
        }
      }
    }
  }
}

TEST(LinearTest, LinearOnAVector) {
  const Tensor x({DType::kF32, {2}}, {1, 2}), w({DType::kF32, {2, 2}}, {1, 2, 3, 4});
  ExpectClose(
      RunKernel("linear", {x, w}, {{DType::kF32, {2}}}, {{"transpose_weight", int64_t{0}}})[0],
      {7, 10});
}

TEST(LinearTest, WeightGradient) {
  for (DType dtype : kFloatsAndBF16) {
    for (const Size& s : kSizes) {
      for (bool transposed : {false, true}) {
        SCOPED_TRACE(::testing::Message() << s.m << "x" << s.n << "x" << s.k << transposed);
        const Tensor x = Tensor::Random(dtype, {2, s.k, s.m}, 1);
        const Tensor dy = Tensor::Random(dtype, {2, s.k, s.n}, 2);
        // The reference is one product of matrices with 2k rows.
        const std::vector<double> expected =
            transposed ? Product(dy.values(), x.values(), 1, s.n, s.m, 2 * s.k, true, false)
                       : Product(x.values(), dy.values(), 1, s.m, s.n, 2 * s.k, true, false);
        ExpectClose(RunKernel("linear_weight_grad", {x, dy},
                              {{dtype, transposed ? Shape{s.n, s.m} : Shape{s.m, s.n}}},
                              {{"transpose_weight", int64_t{transposed}}})[0],
                    expected, 5);
      }
    }
  }
}

// What gradients of microbatches are summed up in may be wider than they are.
TEST(LinearTest, WeightGradientPlusAnAddend) {
  for (DType dtype : kFloatsAndBF16) {
    for (const Size& s : kSizes) {
      for (bool transposed : {false, true}) {
        SCOPED_TRACE(::testing::Message() << s.m << "x" << s.n << "x" << s.k << transposed);
        const Tensor x = Tensor::Random(dtype, {2, s.k, s.m}, 1);
        const Tensor dy = Tensor::Random(dtype, {2, s.k, s.n}, 2);
        const DType wide = dtype == DType::kBF16 ? DType::kF32 : dtype;
        const Tensor addend =
            Tensor::Random(wide, transposed ? Shape{s.n, s.m} : Shape{s.m, s.n}, 3);
        std::vector<double> expected =
            transposed ? Product(dy.values(), x.values(), 1, s.n, s.m, 2 * s.k, true, false)
                       : Product(x.values(), dy.values(), 1, s.m, s.n, 2 * s.k, true, false);
        const std::vector<double> c = addend.values();
        for (size_t i = 0; i < expected.size(); ++i) expected[i] += c[i];
        for (int in_place : {-1, 2}) {
          ExpectClose(RunKernel("linear_weight_grad", {x, dy, addend}, {addend.spec()},
                                {{"transpose_weight", int64_t{transposed}}}, in_place)[0],
                      expected, 5);
        }
      }
    }
  }
}

// Products of bf16 whose result or bias are f32.
TEST(LinearTest, WideSumsOfBFloat16) {
  const Tensor x = Tensor::Random(DType::kBF16, {33, 65}, 1);
  const Tensor w = Tensor::Random(DType::kBF16, {65, 17}, 2);
  std::vector<double> expected = Product(x.values(), w.values(), 1, 33, 17, 65, false, false);
  const TensorSpec wide{DType::kF32, {33, 17}};
  ExpectClose(RunKernel("linear", {x, w}, {wide})[0], expected, 5);
  for (DType added : {DType::kBF16, DType::kF32}) {
    const Tensor b = Tensor::Random(added, {17}, 3);
    const std::vector<double> bias = b.values();
    std::vector<double> sums = expected;
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += bias[i % 17];
    for (DType result : {DType::kBF16, DType::kF32}) {
      ExpectClose(RunKernel("linear", {x, w, b}, {{result, {33, 17}}})[0], sums, 5);
    }
  }
}

TEST(LinearTest, EmptySumIsZero) {
  for (DType dtype : kFloatsAndBF16) {
    const Tensor a = Tensor::Random(dtype, {2, 0}, 1), b = Tensor::Random(dtype, {0, 3}, 2);
    ExpectClose(RunKernel("matmul", {a, b}, {{dtype, {2, 3}}})[0], {0, 0, 0, 0, 0, 0});
  }
}

TEST(LinearTest, EmptySumIsTheAddend) {
  for (DType dtype : kFloatsAndBF16) {
    const Tensor a = Tensor::Random(dtype, {2, 0}, 1), b = Tensor::Random(dtype, {0, 3}, 2);
    const Tensor c = Tensor::Random(dtype, {2, 3}, 3);
    ExpectClose(RunKernel("linear_add", {a, b, c}, {c.spec()})[0], c.values());
  }
}

TEST(LinearTest, WrongAddendIsInvalid) {
  const Tensor x = Tensor::Random(DType::kF32, {4, 3}, 1),
               w = Tensor::Random(DType::kF32, {3, 2}, 2),
               row = Tensor::Random(DType::kF32, {2}, 3),
               wide = Tensor::Random(DType::kF64, {4, 2}, 4);
  for (const Tensor& addend : {row, wide}) {
    EXPECT_EQ(TryKernel("linear_add", {x, w, addend}, {{DType::kF32, {4, 2}}}).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST(LinearTest, WrongWeightShapeIsInvalid) {
  const Tensor x = Tensor::Random(DType::kF32, {4, 3}, 1),
               w = Tensor::Random(DType::kF32, {4, 2}, 2);
  EXPECT_EQ(TryKernel("linear", {x, w}, {{DType::kF32, {4, 2}}}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace oriel::kernels
