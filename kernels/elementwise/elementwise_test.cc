#include <cmath>
#include <functional>
#include <limits>

#include "gmock/gmock.h"
#include "kernels/testing.h"

namespace oriel::kernels {
namespace {

using testing::ExpectClose;
using ::testing::HasSubstr;
using testing::kFloats;
using testing::kFloatsAndBF16;
using testing::RunKernel;
using testing::Tensor;
using testing::TryKernel;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

using Unary = std::function<double(double)>;
using Binary = std::function<double(double, double)>;

// An odd number of elements above the threshold of threads, so that there are tails.
const Shape kLong = {40, 1037};

struct UnaryCase {
  const char* kernel;
  Unary expected;
  double low = -3;
  double high = 3;
};

const UnaryCase kUnaryFloat[] = {
    {"neg", [](double x) { return -x; }},
    {"abs", [](double x) { return std::fabs(x); }},
    {"exp", [](double x) { return std::exp(x); }},
    {"log", [](double x) { return std::log(x); }, 0.1},
    {"sqrt", [](double x) { return std::sqrt(x); }, 0},
    {"rsqrt", [](double x) { return 1 / std::sqrt(x); }, 0.1},
    {"reciprocal", [](double x) { return 1 / x; }, 0.1},
    {"sin", [](double x) { return std::sin(x); }},
    {"cos", [](double x) { return std::cos(x); }},
    {"tan", [](double x) { return std::tan(x); }, -1, 1},
    {"asin", [](double x) { return std::asin(x); }, -1, 1},
    {"acos", [](double x) { return std::acos(x); }, -1, 1},
    {"atan", [](double x) { return std::atan(x); }},
    {"sinh", [](double x) { return std::sinh(x); }},
    {"cosh", [](double x) { return std::cosh(x); }},
    {"asinh", [](double x) { return std::asinh(x); }},
    {"acosh", [](double x) { return std::acosh(x); }, 1.1, 3},
    {"atanh", [](double x) { return std::atanh(x); }, -0.9, 0.9},
    {"tanh", [](double x) { return std::tanh(x); }},
    {"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
    {"erf", [](double x) { return std::erf(x); }},
    {"relu", [](double x) { return std::max(x, 0.0); }},
    {"sign", [](double x) { return x > 0   ? 1.0
                                   : x < 0 ? -1.0
                                           : 0.0; }},
    {"floor", [](double x) { return std::floor(x); }},
    {"ceil", [](double x) { return std::ceil(x); }},
    {"round", [](double x) { return std::nearbyint(x); }},
};

TEST(ElementwiseTest, UnaryOnFloats) {
  for (const UnaryCase& c : kUnaryFloat) {
    for (DType dtype : kFloatsAndBF16) {
      SCOPED_TRACE(c.kernel);
      const Tensor x = Tensor::Random(dtype, kLong, 1, c.low, c.high);
      std::vector<double> expected;
      for (double v : x.values()) expected.push_back(c.expected(v));
      ExpectClose(RunKernel(c.kernel, {x}, {x.spec()})[0], expected);
      ExpectClose(RunKernel(c.kernel, {x}, {x.spec()}, {}, /*in_place=*/0)[0], expected);
    }
  }
}

TEST(ElementwiseTest, UnaryOnIntegers) {
  for (const char* kernel : {"neg", "abs", "relu", "sign"}) {
    for (DType dtype : {DType::kI64, DType::kI32}) {
      SCOPED_TRACE(kernel);
      const Tensor x = Tensor::Random(dtype, {3, 50}, 2, -4, 5);
      const auto* c =
          std::find_if(std::begin(kUnaryFloat), std::end(kUnaryFloat),
                       [&](const UnaryCase& u) { return std::string(u.kernel) == kernel; });
      std::vector<double> expected;
      for (double v : x.values()) expected.push_back(c->expected(v));
      ExpectClose(RunKernel(kernel, {x}, {x.spec()})[0], expected);
    }
  }
}

TEST(ElementwiseTest, RoundsHalvesToEven) {
  const Tensor x({DType::kF32, {5}}, {-1.5, -0.5, 0.5, 1.5, 2.5});
  ExpectClose(RunKernel("round", {x}, {x.spec()})[0], {-2, 0, 0, 2, 2});
}

TEST(ElementwiseTest, NotOnBooleans) {
  const Tensor x({DType::kBool, {3}}, {0, 1, 0});
  ExpectClose(RunKernel("not", {x}, {x.spec()})[0], {1, 0, 1});
}

TEST(ElementwiseTest, NaNPassesThroughReluAndSign) {
  const Tensor x({DType::kF32, {2}}, {kNaN, -1});
  ExpectClose(RunKernel("relu", {x}, {x.spec()})[0], {kNaN, 0});
  ExpectClose(RunKernel("sign", {x}, {x.spec()})[0], {kNaN, -1});
}

struct BinaryCase {
  const char* kernel;
  Binary expected;
  double low = -3;
  double high = 3;
};

double Mod(double a, double b) { return a - std::floor(a / b) * b; }

const BinaryCase kArithmetic[] = {
    {"add", [](double a, double b) { return a + b; }},
    {"sub", [](double a, double b) { return a - b; }},
    {"mul", [](double a, double b) { return a * b; }},
    {"max", [](double a, double b) { return std::max(a, b); }},
    {"min", [](double a, double b) { return std::min(a, b); }},
    {"div", [](double a, double b) { return a / b; }, 1, 5},
    {"mod", Mod, 1, 5},
    {"pow", [](double a, double b) { return std::pow(a, b); }, 1, 4},
};

// Value of the operand at the result's row-major index, by NumPy's rules.
double At(const std::vector<double>& values, const Shape& shape, const Shape& result, int64_t i) {
  int64_t at = 0;
  int64_t stride = 1;
  for (int64_t d = static_cast<int64_t>(result.size()) - 1,
               own = static_cast<int64_t>(shape.size()) - 1;
       d >= 0; --d, --own) {
    const int64_t index = i % result[d];
    i /= result[d];
    if (own < 0) continue;
    if (shape[own] != 1) at += index * stride;
    stride *= shape[own];
  }
  return values[at];
}

std::vector<double> Broadcast(const Tensor& a, const Tensor& b, const Shape& result,
                              const Binary& f) {
  const std::vector<double> av = a.values(), bv = b.values();
  std::vector<double> expected;
  for (int64_t i = 0; i < runtime::NumElements(result); ++i) {
    expected.push_back(f(At(av, a.shape(), result, i), At(bv, b.shape(), result, i)));
  }
  return expected;
}

struct Shapes {
  Shape lhs, rhs, result;
};
const Shapes kShapes[] = {
    {{4, 5, 6}, {4, 5, 6}, {4, 5, 6}},  // same
    {{64, 1037}, {1037}, {64, 1037}},   // row
    {{64, 1037}, {64, 1}, {64, 1037}},  // column
    {{64, 1037}, {}, {64, 1037}},       // scalar
    {{}, {7, 3}, {7, 3}},               // scalar on the left
    {{}, {}, {}},                       // both
    {{5, 1}, {1, 9}, {5, 9}},           // outer product
    {{2, 1, 3, 1, 5}, {7, 1, 4, 1}, {2, 7, 3, 4, 5}},
    {{1, 1, 4}, {2, 3, 1}, {2, 3, 4}},
    {{0, 3}, {3}, {0, 3}},  // empty
};

TEST(ElementwiseTest, ArithmeticBroadcasts) {
  for (const BinaryCase& c : kArithmetic) {
    for (const Shapes& s : kShapes) {
      for (DType dtype : {DType::kF32, DType::kF64, DType::kBF16, DType::kI64, DType::kI32}) {
        SCOPED_TRACE(c.kernel + runtime::ShapeToString(s.lhs) + runtime::ShapeToString(s.rhs));
        const bool whole = dtype == DType::kI64 || dtype == DType::kI32;
        const Tensor a = Tensor::Random(dtype, s.lhs, 3, c.low, c.high);
        const Tensor b = Tensor::Random(dtype, s.rhs, 4, c.low, c.high);
        const Binary f = [&](double x, double y) {
          const double value = c.expected(x, y);
          return whole ? std::trunc(value) : value;
        };
        const double slack = c.kernel == std::string("mod") ? 4 : 1;
        ExpectClose(RunKernel(c.kernel, {a, b}, {{dtype, s.result}})[0],
                    Broadcast(a, b, s.result, f), slack);
      }
    }
  }
}

TEST(ElementwiseTest, ComparisonsBroadcast) {
  const BinaryCase cases[] = {
      {"equal", [](double a, double b) { return double(a == b); }},
      {"less", [](double a, double b) { return double(a < b); }},
      {"less_equal", [](double a, double b) { return double(a <= b); }},
      {"greater", [](double a, double b) { return double(a > b); }},
      {"greater_equal", [](double a, double b) { return double(a >= b); }},
  };
  for (const BinaryCase& c : cases) {
    for (const Shapes& s : kShapes) {
      for (DType dtype : {DType::kF32, DType::kF64, DType::kI64, DType::kI32, DType::kBool}) {
        SCOPED_TRACE(c.kernel);
        const Tensor a = Tensor::Random(dtype, s.lhs, 5);
        const Tensor b = Tensor::Random(dtype, s.rhs, 6);
        ExpectClose(RunKernel(c.kernel, {a, b}, {{DType::kBool, s.result}})[0],
                    Broadcast(a, b, s.result, c.expected));
      }
    }
  }
}

TEST(ElementwiseTest, LogicOnBooleans) {
  const Tensor a({DType::kBool, {4}}, {0, 0, 1, 1});
  const Tensor b({DType::kBool, {4}}, {0, 1, 0, 1});
  ExpectClose(RunKernel("and", {a, b}, {a.spec()})[0], {0, 0, 0, 1});
  ExpectClose(RunKernel("or", {a, b}, {a.spec()})[0], {0, 1, 1, 1});
  ExpectClose(RunKernel("xor", {a, b}, {a.spec()})[0], {0, 1, 1, 0});
}

TEST(ElementwiseTest, ResultMayBeAnOperand) {
  for (DType dtype : kFloats) {
    const Tensor a = Tensor::Random(dtype, kLong, 7);
    const Tensor b = Tensor::Random(dtype, {1037}, 8);
    const auto f = [](double x, double y) { return x - y; };
    ExpectClose(RunKernel("sub", {a, b}, {a.spec()}, {}, /*in_place=*/0)[0],
                Broadcast(a, b, kLong, f));
    ExpectClose(RunKernel("sub", {b, a}, {a.spec()}, {}, /*in_place=*/1)[0],
                Broadcast(b, a, kLong, f));
  }
}

TEST(ElementwiseTest, MaximumOfNaNIsNaN) {
  const Tensor a({DType::kF32, {2}}, {kNaN, 1});
  const Tensor b({DType::kF32, {2}}, {1, kNaN});
  ExpectClose(RunKernel("max", {a, b}, {a.spec()})[0], {kNaN, kNaN});
  ExpectClose(RunKernel("min", {a, b}, {a.spec()})[0], {kNaN, kNaN});
}

TEST(ElementwiseTest, ScalarPowers) {
  for (DType dtype : kFloats) {
    for (double exponent : {2.0, 3.0, 0.5, -1.0}) {
      const Tensor x = Tensor::Random(dtype, {33}, 9, 0.5, 2);
      std::vector<double> expected;
      for (double v : x.values()) expected.push_back(std::pow(v, exponent));
      ExpectClose(RunKernel("pow", {x, Tensor::Scalar(dtype, exponent)}, {x.spec()})[0], expected);
    }
  }
}

TEST(ElementwiseTest, ModHasTheSignOfTheDivisor) {
  for (DType dtype : {DType::kF32, DType::kI64, DType::kI32}) {
    const Tensor a({dtype, {4}}, {7, -7, 7, -7});
    const Tensor b({dtype, {4}}, {3, 3, -3, -3});
    ExpectClose(RunKernel("mod", {a, b}, {a.spec()})[0], {1, 2, -2, -1});
  }
}

TEST(ElementwiseTest, IntegerQuotientRoundsTowardsZero) {
  const Tensor a({DType::kI64, {3}}, {7, -7, -9223372036854775808.0});
  const Tensor b({DType::kI64, {3}}, {2, 2, -1});
  ExpectClose(RunKernel("div", {a, b}, {a.spec()})[0], {3, -3, -9223372036854775808.0});
}

TEST(ElementwiseTest, IntegerDivisionByZeroIsAnError) {
  const Tensor a({DType::kI64, {2}}, {7, 7});
  const Tensor b({DType::kI64, {2}}, {2, 0});
  for (const char* kernel : {"div", "mod"}) {
    const absl::Status status = TryKernel(kernel, {a, b}, {a.spec()}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("element 1 of the integer divisor is zero"));
  }
}

TEST(ElementwiseTest, IntegerPower) {
  const Tensor a({DType::kI64, {5}}, {2, -2, 1, -1, 3});
  const Tensor b({DType::kI64, {5}}, {10, 3, -5, -3, -1});
  ExpectClose(RunKernel("pow", {a, b}, {a.spec()})[0], {1024, -8, 1, -1, 0});
}

TEST(ElementwiseTest, SelectBroadcastsAllThree) {
  const struct {
    Shape condition, on_true, on_false, result;
  } cases[] = {
      {{4, 6}, {4, 6}, {4, 6}, {4, 6}},
      {{40, 1037}, {40, 1037}, {}, {40, 1037}},
      {{40, 1037}, {}, {40, 1037}, {40, 1037}},
      {{5, 6}, {}, {}, {5, 6}},
      {{4, 1}, {4, 8}, {}, {4, 8}},
      {{4, 1}, {1, 8}, {4, 8}, {4, 8}},
      {{}, {3}, {2, 3}, {2, 3}},
      {{2, 1, 3}, {2, 4, 1}, {3}, {2, 4, 3}},
  };
  for (const auto& c : cases) {
    for (DType dtype :
         {DType::kF32, DType::kF64, DType::kI64, DType::kI32, DType::kBF16, DType::kBool}) {
      const Tensor condition = Tensor::Random(DType::kBool, c.condition, 10);
      const Tensor a = Tensor::Random(dtype, c.on_true, 11);
      const Tensor b = Tensor::Random(dtype, c.on_false, 12);
      const auto cv = condition.values(), av = a.values(), bv = b.values();
      std::vector<double> expected;
      for (int64_t i = 0; i < runtime::NumElements(c.result); ++i) {
        expected.push_back(At(cv, c.condition, c.result, i) != 0 ? At(av, c.on_true, c.result, i)
                                                                 : At(bv, c.on_false, c.result, i));
      }
      const Tensor y = RunKernel("select", {condition, a, b}, {{dtype, c.result}})[0];
      EXPECT_EQ(y.values(), expected);
    }
  }
}

TEST(ElementwiseTest, ShapesThatDoNotBroadcastAreInvalid) {
  const Tensor a = Tensor::Random(DType::kF32, {4, 3}, 1);
  const Tensor b = Tensor::Random(DType::kF32, {4}, 1);
  EXPECT_EQ(TryKernel("add", {a, b}, {a.spec()}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace oriel::kernels
