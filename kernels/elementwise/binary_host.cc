// Binary elementwise kernels; see elementwise.h.
#include <cmath>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/elementwise/wrapping.h"

namespace oriel::kernels {
namespace {

#define ORIEL_BINARY(name, result, expression)       \
  struct name {                                      \
    template <typename T>                            \
    static result Apply(T a, [[maybe_unused]] T b) { \
      return expression;                             \
    }                                                \
  }

template <typename T>
T Quotient(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == -1) return static_cast<T>(Wide<T>(0) - Wide<T>(a));  // the smallest number wraps
  }
  return a / b;
}

template <typename T>
T Remainder(T a, T b) {
  T rest;
  if constexpr (std::is_integral_v<T>) {
    if (b == -1) return 0;
    rest = a % b;
  } else {
    rest = std::fmod(a, b);
  }
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

template <typename T>
T Power(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0;
    Wide<T> result = 1;
    Wide<T> base = static_cast<Wide<T>>(a);
    for (T rest = b; rest > 0; rest >>= 1) {
      if (rest & 1) result *= base;
      base *= base;
    }
    return static_cast<T>(result);
  } else {
    return std::pow(a, b);
  }
}

ORIEL_BINARY(Add, T, static_cast<T>(Wide<T>(a) + Wide<T>(b)));
ORIEL_BINARY(Sub, T, static_cast<T>(Wide<T>(a) - Wide<T>(b)));
ORIEL_BINARY(Mul, T, static_cast<T>(Wide<T>(a) * Wide<T>(b)));
ORIEL_BINARY(Div, T, Quotient(a, b));
ORIEL_BINARY(Mod, T, Remainder(a, b));
ORIEL_BINARY(Pow, T, Power(a, b));
ORIEL_BINARY(Square, T, a* a);
ORIEL_BINARY(Cube, T, a* a* a);
ORIEL_BINARY(Max, T, (a > b || a != a) ? a : b);
ORIEL_BINARY(Min, T, (a < b || a != a) ? a : b);
ORIEL_BINARY(Equal, uint8_t, a == b);
ORIEL_BINARY(Less, uint8_t, a < b);
ORIEL_BINARY(LessEqual, uint8_t, a <= b);
ORIEL_BINARY(Greater, uint8_t, a > b);
ORIEL_BINARY(GreaterEqual, uint8_t, a >= b);
ORIEL_BINARY(And, T, a& b);
ORIEL_BINARY(Or, T, a | b);
ORIEL_BINARY(Xor, T, a ^ b);

absl::Status CheckBinary(const KernelSpec& spec, bool compares) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2, 1));
  const DType dtype = spec.operands[0].dtype;
  if (spec.operands[1].dtype != dtype) return Malformed(spec, "operands differ in type");
  return CheckResult(spec, 0, compares ? DType::kBool : dtype, spec.results[0].shape);
}

// A launch that first looks for a zero divisor.
template <typename Op, typename T>
absl::StatusOr<KernelFn> MakeGuarded(const KernelSpec& spec) {
  ORIEL_ASSIGN_OR_RETURN(KernelFn divide, (MakeBinary<Op, T, T>(spec)));
  const int64_t count = spec.operands[1].num_elements();
  const std::string kernel = spec.kernel;
  return KernelFn([divide = std::move(divide), count, kernel](const KernelArgs& args) {
    const T* divisor = args.operand<T>(1);
    for (int64_t i = 0; i < count; ++i) {
      if (divisor[i] == 0) {
        return absl::InvalidArgumentError(
            absl::StrCat(kernel, ": element ", i, " of the integer divisor is zero"));
      }
    }
    return divide(args);
  });
}

template <typename Op, typename T>
absl::StatusOr<KernelFn> MakeIntegerArithmetic(const KernelSpec& spec) {
  if constexpr (std::is_same_v<Op, Div> || std::is_same_v<Op, Mod>) {
    return MakeGuarded<Op, T>(spec);
  } else {
    return MakeBinary<Op, T, T>(spec);
  }
}

template <typename Op>
absl::StatusOr<KernelFn> MakeArithmetic(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckBinary(spec, /*compares=*/false));
  switch (spec.operands[0].dtype) {
    case DType::kF32:
      return MakeBinary<Op, float, float>(spec);
    case DType::kF64:
      return MakeBinary<Op, double, double>(spec);
    case DType::kBF16:
      return MakeBinary<Op, BFloat16, BFloat16>(spec);
    case DType::kI64:
      return MakeIntegerArithmetic<Op, int64_t>(spec);
    case DType::kI32:
      return MakeIntegerArithmetic<Op, int32_t>(spec);
    default:
      return Unsupported(spec, "takes f32, f64, bf16, i64 and i32");
  }
}

// Powers by a scalar are mostly squares: that is seen at run time, in the buffer.
template <typename S>
absl::StatusOr<KernelFn> MakeScalarPower(const KernelSpec& spec) {
  ORIEL_ASSIGN_OR_RETURN(KernelFn general, (MakeBinary<Pow, S, S>(spec)));
  ORIEL_ASSIGN_OR_RETURN(KernelFn square, (MakeBinary<Square, S, S>(spec)));
  ORIEL_ASSIGN_OR_RETURN(KernelFn cube, (MakeBinary<Cube, S, S>(spec)));
  return KernelFn([=](const KernelArgs& args) {
    using T = Compute<S>;
    const T exponent = args.operand<S>(1)[0];
    if (exponent == T(2)) return square(args);
    if (exponent == T(3)) return cube(args);
    return general(args);
  });
}

absl::StatusOr<KernelFn> MakePow(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckBinary(spec, /*compares=*/false));
  if (spec.operands[1].num_elements() == 1) {
    if (spec.operands[0].dtype == DType::kF32) return MakeScalarPower<float>(spec);
    if (spec.operands[0].dtype == DType::kF64) return MakeScalarPower<double>(spec);
    if (spec.operands[0].dtype == DType::kBF16) return MakeScalarPower<BFloat16>(spec);
  }
  return MakeArithmetic<Pow>(spec);
}

template <typename Op>
absl::StatusOr<KernelFn> MakeCompare(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckBinary(spec, /*compares=*/true));
  switch (spec.operands[0].dtype) {
    case DType::kF32:
      return MakeBinary<Op, float, uint8_t>(spec);
    case DType::kF64:
      return MakeBinary<Op, double, uint8_t>(spec);
    case DType::kBF16:
      return MakeBinary<Op, BFloat16, uint8_t>(spec);
    case DType::kI64:
      return MakeBinary<Op, int64_t, uint8_t>(spec);
    case DType::kI32:
      return MakeBinary<Op, int32_t, uint8_t>(spec);
    case DType::kBool:
      return MakeBinary<Op, uint8_t, uint8_t>(spec);
    default:
      return Unsupported(spec, "takes f32, f64, bf16, i64, i32 and bool");
  }
}

template <typename Op>
absl::StatusOr<KernelFn> MakeLogical(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckBinary(spec, /*compares=*/true));
  if (spec.operands[0].dtype != DType::kBool) return Unsupported(spec, "takes bool");
  return MakeBinary<Op, uint8_t, uint8_t>(spec);
}

ORIEL_REGISTER_HOST_KERNEL("add", 0, MakeArithmetic<Add>);
ORIEL_REGISTER_HOST_KERNEL("sub", 0, MakeArithmetic<Sub>);
ORIEL_REGISTER_HOST_KERNEL("mul", 0, MakeArithmetic<Mul>);
ORIEL_REGISTER_HOST_KERNEL("div", 0, MakeArithmetic<Div>);
ORIEL_REGISTER_HOST_KERNEL("pow", 0, MakePow);
ORIEL_REGISTER_HOST_KERNEL("max", 0, MakeArithmetic<Max>);
ORIEL_REGISTER_HOST_KERNEL("min", 0, MakeArithmetic<Min>);
ORIEL_REGISTER_HOST_KERNEL("mod", 0, MakeArithmetic<Mod>);
ORIEL_REGISTER_HOST_KERNEL("and", 0, MakeLogical<And>);
ORIEL_REGISTER_HOST_KERNEL("or", 0, MakeLogical<Or>);
ORIEL_REGISTER_HOST_KERNEL("xor", 0, MakeLogical<Xor>);
ORIEL_REGISTER_HOST_KERNEL("equal", 0, MakeCompare<Equal>);
ORIEL_REGISTER_HOST_KERNEL("less", 0, MakeCompare<Less>);
ORIEL_REGISTER_HOST_KERNEL("less_equal", 0, MakeCompare<LessEqual>);
ORIEL_REGISTER_HOST_KERNEL("greater", 0, MakeCompare<Greater>);
ORIEL_REGISTER_HOST_KERNEL("greater_equal", 0, MakeCompare<GreaterEqual>);

}  // namespace
}  // namespace oriel::kernels
