#include "kernels/solve/solve.h"

#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/testing.h"

namespace oriel::kernels {
namespace {

using testing::ExpectClose;
using testing::kFloats;
using testing::RunKernel;
using testing::Tensor;
using testing::TryKernel;

struct Flags {
  bool upper, transpose, unit_diagonal;

  testing::Attributes attributes() const {
    return {{"upper", int64_t{upper}},
            {"transpose", int64_t{transpose}},
            {"unit_diagonal", int64_t{unit_diagonal}}};
  }
};

// What multiplies the unknowns: op(T).
std::vector<double> Factors(const Tensor& matrix, const Flags& flags) {
  const int64_t n = matrix.shape().back();
  const std::vector<double> all = matrix.values();
  std::vector<double> factors(all.size());
  for (int64_t at = 0; at < matrix.size(); ++at) {
    const int64_t system = at / (n * n), i = at / n % n, j = at % n;
    if (flags.upper ? j < i : j > i) continue;
    const double value = i == j && flags.unit_diagonal ? 1 : all[at];
    factors[system * n * n + (flags.transpose ? j * n + i : i * n + j)] = value;
  }
  return factors;
}

// op(T) X, which a solution makes the right-hand side.
std::vector<double> Product(const std::vector<double>& factors, const Tensor& x, int64_t n) {
  const int64_t m = x.shape().back(), systems = n * m == 0 ? 0 : x.size() / (n * m);
  const std::vector<double> of_x = x.values();
  std::vector<double> product(x.size());
  for (int64_t s = 0; s < systems; ++s) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        for (int64_t c = 0; c < m; ++c) {
          product[(s * n + i) * m + c] += factors[(s * n + i) * n + j] * of_x[(s * n + j) * m + c];
        }
      }
    }
  }
  return product;
}

// A matrix whose systems are well conditioned: small beside the diagonal. What must not be read is
// NaN.
Tensor Matrix(DType dtype, Shape batch, int64_t n, const Flags& flags) {
  batch.insert(batch.end(), {n, n});
  const double most = 1.0 / static_cast<double>(n + 1);
  std::vector<double> values = Tensor::Random(dtype, batch, 1, -most, most).values();
  const std::vector<double> diagonal = Tensor::Random(dtype, batch, 2, 1, 2).values();
  for (size_t at = 0; at < values.size(); ++at) {
    const int64_t i = static_cast<int64_t>(at) / n % n, j = static_cast<int64_t>(at) % n;
    const bool read = flags.upper ? j > i : j < i;
    if (i == j) values[at] = diagonal[at];
    if (i == j ? flags.unit_diagonal : !read) values[at] = std::numeric_limits<double>::quiet_NaN();
  }
  return Tensor({dtype, batch}, values);
}

Tensor Solve(const Tensor& matrix, const Tensor& rhs, const Flags& flags) {
  return RunKernel("triangular_solve", {matrix, rhs}, {rhs.spec()}, flags.attributes())[0];
}

TEST(TriangularSolve, TimesTheTriangleIsTheRightHandSide) {
  struct Sizes {
    Shape batch;
    int64_t n, m;
  };
  const Sizes cases[] = {{{}, 1, 1},     {{}, 5, 3},      {{2, 3}, 16, 16}, {{3}, 64, 64},
                         {{2}, 17, 130}, {{2, 2}, 33, 1}, {{}, 150, 70},    {{300}, 4, 2},
                         {{0}, 4, 2},    {{2}, 0, 3},     {{2}, 3, 0}};
  for (const DType dtype : kFloats) {
    for (int bits = 0; bits < 8; ++bits) {
      const Flags flags{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0};
      for (const Sizes& sizes : cases) {
        SCOPED_TRACE(absl::StrCat(std::string(runtime::DTypeName(dtype)), ", flags ", bits, ", ",
                                  sizes.n, " rows, ", sizes.m, " columns"));
        Shape shape = sizes.batch;
        shape.insert(shape.end(), {sizes.n, sizes.m});
        const Tensor matrix = Matrix(dtype, sizes.batch, sizes.n, flags);
        const Tensor rhs = Tensor::Random(dtype, shape, 3);
        const Tensor x = Solve(matrix, rhs, flags);
        ExpectClose(Tensor({dtype, shape}, Product(Factors(matrix, flags), x, sizes.n)),
                    rhs.values(), /*slack=*/4);
      }
    }
  }
}

// The inverse of 1 - N for a nilpotent N: 1 + N + N² + ..
TEST(TriangularSolve, InvertsWhatAWrittenSeriesDoes) {
  const Tensor matrix({DType::kF64, {3, 3}}, {1, 0, 0, -2, 1, 0, -3, -4, 1});
  const Tensor one({DType::kF64, {3, 3}}, {1, 0, 0, 0, 1, 0, 0, 0, 1});
  ExpectClose(Solve(matrix, one, {false, false, true}), {1, 0, 0, 2, 1, 0, 11, 4, 1});
}

TEST(TriangularSolve, ZeroOnTheDiagonalIsInfinite) {
  const Tensor matrix({DType::kF32, {1, 1}}, {0.0}), rhs({DType::kF32, {1, 1}}, {2.0});
  EXPECT_EQ(Solve(matrix, rhs, {false, false, false}).values()[0],
            std::numeric_limits<double>::infinity());
}

TEST(TriangularSolve, RefusesShapesThatDoNotFit) {
  const auto refused = [](const Shape& matrix, const Shape& rhs) {
    return !TryKernel("triangular_solve",
                      {Tensor::Random(DType::kF32, matrix, 1), Tensor::Random(DType::kF32, rhs, 2)},
                      {{DType::kF32, rhs}})
                .ok();
  };
  EXPECT_TRUE(refused({3}, {3}));
  EXPECT_TRUE(refused({3, 4}, {3, 2}));
  EXPECT_TRUE(refused({2, 3, 3}, {3, 2}));
  EXPECT_TRUE(refused({2, 3, 3}, {1, 3, 2}));
  EXPECT_TRUE(refused({3, 3}, {4, 2}));
}

}  // namespace
}  // namespace oriel::kernels
