// Unary elementwise kernels; see elementwise.h.
#include <cmath>
#include <type_traits>

#include "kernels/common/vector_math.h"
#include "kernels/elementwise/elementwise.h"

namespace oriel::kernels {
namespace {

#define ORIEL_UNARY(name, expression) \
  struct name {                       \
    template <typename T>             \
    static T Apply(T x) {             \
      return expression;              \
    }                                 \
  }

template <typename T>
T Negate(T x) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(x));  // wraps
  } else {
    return -x;
  }
}

template <typename T>
T Absolute(T x) {
  if constexpr (std::is_integral_v<T>) {
    return x < 0 ? Negate(x) : x;
  } else {
    return std::fabs(x);
  }
}

ORIEL_UNARY(Neg, Negate(x));
ORIEL_UNARY(Abs, Absolute(x));
ORIEL_UNARY(ExpOf, Exp(x));
ORIEL_UNARY(Log, std::log(x));
ORIEL_UNARY(Sqrt, std::sqrt(x));
ORIEL_UNARY(Rsqrt, T(1) / std::sqrt(x));
ORIEL_UNARY(Reciprocal, T(1) / x);
ORIEL_UNARY(Sin, std::sin(x));
ORIEL_UNARY(Cos, std::cos(x));
ORIEL_UNARY(Tan, std::tan(x));
ORIEL_UNARY(Asin, std::asin(x));
ORIEL_UNARY(Acos, std::acos(x));
ORIEL_UNARY(Atan, std::atan(x));
ORIEL_UNARY(Sinh, std::sinh(x));
ORIEL_UNARY(Cosh, std::cosh(x));
ORIEL_UNARY(Asinh, std::asinh(x));
ORIEL_UNARY(Acosh, std::acosh(x));
ORIEL_UNARY(Atanh, std::atanh(x));
ORIEL_UNARY(TanhOf, Tanh(x));
ORIEL_UNARY(SigmoidOf, Sigmoid(x));
ORIEL_UNARY(ErfOf, Erf(x));
ORIEL_UNARY(Relu, x < T(0) ? T(0) : x);
ORIEL_UNARY(Sign, x > T(0) ? T(1) : (x < T(0) ? T(-1) : x));  // keeps 0, -0 and NaN
ORIEL_UNARY(Floor, std::floor(x));
ORIEL_UNARY(Ceil, std::ceil(x));
ORIEL_UNARY(Round, std::nearbyint(x));  // the rounding mode is never changed: ties to even
ORIEL_UNARY(Not, static_cast<T>(x == 0));

absl::Status CheckUnary(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 1, 1));
  return CheckResult(spec, 0, spec.operands[0].dtype, spec.operands[0].shape);
}

template <typename Op>
absl::StatusOr<KernelFn> MakeFloat(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckUnary(spec));
  switch (spec.operands[0].dtype) {
    case DType::kF32:
      return MakeUnary<Op, float>(spec);
    case DType::kF64:
      return MakeUnary<Op, double>(spec);
    case DType::kBF16:
      return MakeUnary<Op, BFloat16>(spec);
    default:
      return Unsupported(spec, "takes f32, f64 and bf16");
  }
}

template <typename Op>
absl::StatusOr<KernelFn> MakeNumber(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckUnary(spec));
  switch (spec.operands[0].dtype) {
    case DType::kI64:
      return MakeUnary<Op, int64_t>(spec);
    case DType::kI32:
      return MakeUnary<Op, int32_t>(spec);
    default:
      return MakeFloat<Op>(spec);
  }
}

absl::StatusOr<KernelFn> MakeNot(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckUnary(spec));
  if (spec.operands[0].dtype != DType::kBool) return Unsupported(spec, "takes bool");
  return MakeUnary<Not, uint8_t>(spec);
}

ORIEL_REGISTER_HOST_KERNEL("neg", 0, MakeNumber<Neg>);
ORIEL_REGISTER_HOST_KERNEL("abs", 0, MakeNumber<Abs>);
ORIEL_REGISTER_HOST_KERNEL("exp", 0, MakeFloat<ExpOf>);
ORIEL_REGISTER_HOST_KERNEL("log", 0, MakeFloat<Log>);
ORIEL_REGISTER_HOST_KERNEL("sqrt", 0, MakeFloat<Sqrt>);
ORIEL_REGISTER_HOST_KERNEL("rsqrt", 0, MakeFloat<Rsqrt>);
ORIEL_REGISTER_HOST_KERNEL("reciprocal", 0, MakeFloat<Reciprocal>);
ORIEL_REGISTER_HOST_KERNEL("sin", 0, MakeFloat<Sin>);
ORIEL_REGISTER_HOST_KERNEL("cos", 0, MakeFloat<Cos>);
ORIEL_REGISTER_HOST_KERNEL("tan", 0, MakeFloat<Tan>);
ORIEL_REGISTER_HOST_KERNEL("asin", 0, MakeFloat<Asin>);
ORIEL_REGISTER_HOST_KERNEL("acos", 0, MakeFloat<Acos>);
ORIEL_REGISTER_HOST_KERNEL("atan", 0, MakeFloat<Atan>);
ORIEL_REGISTER_HOST_KERNEL("sinh", 0, MakeFloat<Sinh>);
ORIEL_REGISTER_HOST_KERNEL("cosh", 0, MakeFloat<Cosh>);
ORIEL_REGISTER_HOST_KERNEL("asinh", 0, MakeFloat<Asinh>);
ORIEL_REGISTER_HOST_KERNEL("acosh", 0, MakeFloat<Acosh>);
ORIEL_REGISTER_HOST_KERNEL("atanh", 0, MakeFloat<Atanh>);
ORIEL_REGISTER_HOST_KERNEL("tanh", 0, MakeFloat<TanhOf>);
ORIEL_REGISTER_HOST_KERNEL("sigmoid", 0, MakeFloat<SigmoidOf>);
ORIEL_REGISTER_HOST_KERNEL("erf", 0, MakeFloat<ErfOf>);
ORIEL_REGISTER_HOST_KERNEL("relu", 0, MakeNumber<Relu>);
ORIEL_REGISTER_HOST_KERNEL("sign", 0, MakeNumber<Sign>);
ORIEL_REGISTER_HOST_KERNEL("floor", 0, MakeFloat<Floor>);
ORIEL_REGISTER_HOST_KERNEL("ceil", 0, MakeFloat<Ceil>);
ORIEL_REGISTER_HOST_KERNEL("round", 0, MakeFloat<Round>);
ORIEL_REGISTER_HOST_KERNEL("not", 0, MakeNot);

}  // namespace
}  // namespace oriel::kernels
