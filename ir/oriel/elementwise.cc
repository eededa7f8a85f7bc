#include <cmath>
#include <limits>

#include "ir/oriel/folding.h"
#include "ir/oriel/inference.h"
#include "ir/oriel/oriel.h"

namespace oriel::ir {

using mlir::LogicalResult;
using mlir::OpFoldResult;

// ---- Integers wrap, and floats follow IEEE 754; an empty optional is not folded. ----
namespace {

template <typename T>
T sum(T a, T b) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(uint64_t(a) + uint64_t(b));
  return a + b;
}

template <typename T>
T difference(T a, T b) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(uint64_t(a) - uint64_t(b));
  return a - b;
}

template <typename T>
T product(T a, T b) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(uint64_t(a) * uint64_t(b));
  return a * b;
}

template <typename T>
std::optional<T> quotient(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0 || (b == -1 && a == std::numeric_limits<T>::min())) return std::nullopt;
  }
  return a / b;
}

template <typename T>
std::optional<T> floorRemainder(T a, T b) {
  T remainder;
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) return std::nullopt;
    remainder = b == -1 ? 0 : a % b;
  } else {
    remainder = std::fmod(a, b);
  }
  return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

template <typename T>
std::optional<T> power(T base, T exponent) {
  if constexpr (std::is_integral_v<T>) {
    if (exponent < 0) return std::nullopt;
    T result = 1;
    for (; exponent != 0; exponent >>= 1) {
      if (exponent & 1) result = product(result, base);
      base = product(base, base);
    }
    return result;
  } else {
    return static_cast<T>(std::pow(double(base), double(exponent)));
  }
}

// NaN wins, as in NumPy and ONNX.
template <typename T>
T larger(T a, T b) {
  return a > b || a != a ? a : b;
}
template <typename T>
T smaller(T a, T b) {
  return a < b || a != a ? a : b;
}

}  // namespace

// ---- Unary ----

OpFoldResult NegOp::fold(FoldAdaptor adaptor) {
  if (auto inner = getInput().getDefiningOp<NegOp>()) return inner.getInput();
  return foldUnary(adaptor.getInput(), getType(), [](auto x) {
    if constexpr (std::is_integral_v<decltype(x)>) return difference(decltype(x){0}, x);
    return -x;
  });
}

OpFoldResult AbsOp::fold(FoldAdaptor adaptor) {
  return foldUnary(adaptor.getInput(), getType(), [](auto x) {
    if constexpr (std::is_integral_v<decltype(x)>) {
      return x < 0 ? difference(decltype(x){0}, x) : x;
    } else {
      return std::fabs(x);
    }
  });
}

OpFoldResult ExpOp::fold(FoldAdaptor adaptor) {
  return foldUnary(adaptor.getInput(), getType(), [](auto x) { return std::exp(double(x)); });
}

OpFoldResult LogOp::fold(FoldAdaptor adaptor) {
  return foldUnary(adaptor.getInput(), getType(), [](auto x) { return std::log(double(x)); });
}

OpFoldResult SqrtOp::fold(FoldAdaptor adaptor) {
  return foldUnary(adaptor.getInput(), getType(), [](auto x) { return std::sqrt(x); });
}

OpFoldResult RsqrtOp::fold(FoldAdaptor adaptor) {
  return foldUnary(adaptor.getInput(), getType(), [](auto x) { return 1 / std::sqrt(double(x)); });
}

OpFoldResult ReciprocalOp::fold(FoldAdaptor adaptor) {
  return foldUnary(adaptor.getInput(), getType(), [](auto x) { return 1 / double(x); });
}

OpFoldResult SinOp::fold(FoldAdaptor adaptor) {
  return foldUnary(adaptor.getInput(), getType(), [](auto x) { return std::sin(double(x)); });
}

OpFoldResult CosOp::fold(FoldAdaptor adaptor) {
  return foldUnary(adaptor.getInput(), getType(), [](auto x) { return std::cos(double(x)); });
}

OpFoldResult TanOp::fold(FoldAdaptor adaptor) {
  return foldUnary(adaptor.getInput(), getType(), [](auto x) { return std::tan(double(x)); });
}

OpFoldResult AsinOp::fold(FoldAdaptor adaptor) {
  return foldUnary(adaptor.getInput(), getType(), [](auto x) { return std::asin(double(x)); });
}

OpFoldResult AcosOp::fold(FoldAdaptor adaptor) {
  return foldUnary(adaptor.getInput(), getType(), [](auto x) { return std::acos(double(x)); });
}

OpFoldResult AtanOp::fold(FoldAdaptor adaptor) {
  return foldUnary(adaptor.getInput(), getType(), [](auto x) { return std::atan(double(x)); });
}

OpFoldResult SinhOp::fold(FoldAdaptor adaptor) {
  return foldUnary(adaptor.getInput(), getType(), [](auto x) { return std::sinh(double(x)); });
}

OpFoldResult CoshOp::fold(FoldAdaptor adaptor) {
  return foldUnary(adaptor.getInput(), getType(), [](auto x) { return std::cosh(double(x)); });
}

OpFoldResult AsinhOp::fold(FoldAdaptor adaptor) {
  return foldUnary(adaptor.getInput(), getType(), [](auto x) { return std::asinh(double(x)); });
}

OpFoldResult AcoshOp::fold(FoldAdaptor adaptor) {
  return foldUnary(adaptor.getInput(), getType(), [](auto x) { return std::acosh(double(x)); });
}

OpFoldResult AtanhOp::fold(FoldAdaptor adaptor) {
  return foldUnary(adaptor.getInput(), getType(), [](auto x) { return std::atanh(double(x)); });
}

OpFoldResult TanhOp::fold(FoldAdaptor adaptor) {
  return foldUnary(adaptor.getInput(), getType(), [](auto x) { return std::tanh(double(x)); });
}

OpFoldResult SigmoidOp::fold(FoldAdaptor adaptor) {
  return foldUnary(adaptor.getInput(), getType(),
                   [](auto x) { return 1 / (1 + std::exp(-double(x))); });
}

OpFoldResult ErfOp::fold(FoldAdaptor adaptor) {
  return foldUnary(adaptor.getInput(), getType(), [](auto x) { return std::erf(double(x)); });
}

OpFoldResult ReluOp::fold(FoldAdaptor adaptor) {
  return foldUnary(adaptor.getInput(), getType(), [](auto x) { return larger(x, decltype(x){0}); });
}

OpFoldResult SignOp::fold(FoldAdaptor adaptor) {
  return foldUnary(adaptor.getInput(), getType(), [](auto x) {
    using T = decltype(x);
    return x != x ? x : static_cast<T>((x > 0) - (x < 0));
  });
}

// Of a constant, and of one that stops already.
OpFoldResult StopGradientOp::fold(FoldAdaptor adaptor) {
  if (getInput().getDefiningOp<StopGradientOp>()) return getInput();
  return adaptor.getInput();
}

OpFoldResult FloorOp::fold(FoldAdaptor adaptor) {
  return foldUnary(adaptor.getInput(), getType(), [](auto x) { return std::floor(x); });
}

OpFoldResult CeilOp::fold(FoldAdaptor adaptor) {
  return foldUnary(adaptor.getInput(), getType(), [](auto x) { return std::ceil(x); });
}

OpFoldResult RoundOp::fold(FoldAdaptor adaptor) {
  return foldUnary(adaptor.getInput(), getType(), [](auto x) { return std::nearbyint(double(x)); });
}

OpFoldResult NotOp::fold(FoldAdaptor adaptor) {
  if (auto inner = getInput().getDefiningOp<NotOp>()) return inner.getInput();
  return foldUnary(adaptor.getInput(), getType(), [](auto x) { return x == 0; });
}

// ---- Binary ----
namespace {

template <typename OpTy>
LogicalResult inferBroadcast(MaybeLocation location, typename OpTy::Adaptor adaptor,
                             mlir::Type elementType, llvm::SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, OpTy::getOperationName());
  llvm::ArrayRef<int64_t> lhs = shapeOf(adaptor.getLhs());
  llvm::ArrayRef<int64_t> rhs = shapeOf(adaptor.getRhs());
  auto shape = broadcastShapes(lhs, rhs);
  if (failed(shape)) {
    return context.refuse("expects operands that broadcast to a common shape, got ", shapeText(lhs),
                          " and ", shapeText(rhs));
  }
  return context.addResult(*shape, elementType, results);
}

template <typename OpTy>
LogicalResult inferArithmetic(MaybeLocation location, typename OpTy::Adaptor adaptor,
                              llvm::SmallVectorImpl<mlir::Type>& results) {
  mlir::Type elementType = elementOf(adaptor.getLhs());
  return inferBroadcast<OpTy>(location, adaptor, elementType, results);
}

template <typename OpTy>
LogicalResult inferCompare(mlir::MLIRContext* context, MaybeLocation location,
                           typename OpTy::Adaptor adaptor,
                           llvm::SmallVectorImpl<mlir::Type>& results) {
  return inferBroadcast<OpTy>(location, adaptor, mlir::IntegerType::get(context, 1), results);
}

// lhs for `lhs op neutral`.
template <typename OpTy, typename Adaptor>
OpFoldResult foldNeutralRhs(OpTy op, Adaptor adaptor, double neutral) {
  return isUniform(adaptor.getRhs(), neutral) ? asResult(op, op.getLhs()) : OpFoldResult();
}

// The other operand for `lhs op neutral` and `neutral op rhs`.
template <typename OpTy, typename Adaptor>
OpFoldResult foldNeutral(OpTy op, Adaptor adaptor, double neutral) {
  if (OpFoldResult lhs = foldNeutralRhs(op, adaptor, neutral)) return lhs;
  return isUniform(adaptor.getLhs(), neutral) ? asResult(op, op.getRhs()) : OpFoldResult();
}

// All elements `value`, if either operand is that.
template <typename OpTy, typename Adaptor>
OpFoldResult foldAbsorbing(OpTy op, Adaptor adaptor, int64_t value) {
  if (!isUniform(adaptor.getLhs(), value) && !isUniform(adaptor.getRhs(), value)) return {};
  return writeElements<int64_t>(op.getType(), value);
}

}  // namespace

#define ORIEL_INFER_ARITHMETIC(OpTy)                                                 \
  LogicalResult OpTy::inferReturnTypes(mlir::MLIRContext*, MaybeLocation location,   \
                                       Adaptor adaptor,                              \
                                       llvm::SmallVectorImpl<mlir::Type>& results) { \
    return inferArithmetic<OpTy>(location, adaptor, results);                        \
  }
ORIEL_INFER_ARITHMETIC(AddOp)
ORIEL_INFER_ARITHMETIC(SubOp)
ORIEL_INFER_ARITHMETIC(MulOp)
ORIEL_INFER_ARITHMETIC(DivOp)
ORIEL_INFER_ARITHMETIC(PowOp)
ORIEL_INFER_ARITHMETIC(MaxOp)
ORIEL_INFER_ARITHMETIC(MinOp)
ORIEL_INFER_ARITHMETIC(ModOp)
ORIEL_INFER_ARITHMETIC(AndOp)
ORIEL_INFER_ARITHMETIC(OrOp)
ORIEL_INFER_ARITHMETIC(XorOp)
#undef ORIEL_INFER_ARITHMETIC

OpFoldResult AddOp::fold(FoldAdaptor adaptor) {
  if (OpFoldResult result = foldNeutral(*this, adaptor, 0)) return result;
  return foldBinary(adaptor.getLhs(), adaptor.getRhs(), getType(),
                    [](auto a, auto b) { return sum(a, b); });
}

OpFoldResult SubOp::fold(FoldAdaptor adaptor) {
  if (OpFoldResult result = foldNeutralRhs(*this, adaptor, 0)) return result;
  return foldBinary(adaptor.getLhs(), adaptor.getRhs(), getType(),
                    [](auto a, auto b) { return difference(a, b); });
}

OpFoldResult MulOp::fold(FoldAdaptor adaptor) {
  if (OpFoldResult result = foldNeutral(*this, adaptor, 1)) return result;
  return foldBinary(adaptor.getLhs(), adaptor.getRhs(), getType(),
                    [](auto a, auto b) { return product(a, b); });
}

OpFoldResult DivOp::fold(FoldAdaptor adaptor) {
  if (OpFoldResult result = foldNeutralRhs(*this, adaptor, 1)) return result;
  return foldBinary(adaptor.getLhs(), adaptor.getRhs(), getType(),
                    [](auto a, auto b) { return quotient(a, b); });
}

OpFoldResult PowOp::fold(FoldAdaptor adaptor) {
  if (OpFoldResult result = foldNeutralRhs(*this, adaptor, 1)) return result;
  return foldBinary(adaptor.getLhs(), adaptor.getRhs(), getType(),
                    [](auto a, auto b) { return power(a, b); });
}

OpFoldResult MaxOp::fold(FoldAdaptor adaptor) {
  return foldBinary(adaptor.getLhs(), adaptor.getRhs(), getType(),
                    [](auto a, auto b) { return larger(a, b); });
}

OpFoldResult MinOp::fold(FoldAdaptor adaptor) {
  return foldBinary(adaptor.getLhs(), adaptor.getRhs(), getType(),
                    [](auto a, auto b) { return smaller(a, b); });
}

OpFoldResult ModOp::fold(FoldAdaptor adaptor) {
  return foldBinary(adaptor.getLhs(), adaptor.getRhs(), getType(),
                    [](auto a, auto b) { return floorRemainder(a, b); });
}

OpFoldResult AndOp::fold(FoldAdaptor adaptor) {
  if (OpFoldResult result = foldNeutral(*this, adaptor, 1)) return result;
  if (OpFoldResult result = foldAbsorbing(*this, adaptor, 0)) return result;
  return foldBinary(adaptor.getLhs(), adaptor.getRhs(), getType(),
                    [](auto a, auto b) { return a != 0 && b != 0; });
}

OpFoldResult OrOp::fold(FoldAdaptor adaptor) {
  if (OpFoldResult result = foldNeutral(*this, adaptor, 0)) return result;
  if (OpFoldResult result = foldAbsorbing(*this, adaptor, 1)) return result;
  return foldBinary(adaptor.getLhs(), adaptor.getRhs(), getType(),
                    [](auto a, auto b) { return a != 0 || b != 0; });
}

OpFoldResult XorOp::fold(FoldAdaptor adaptor) {
  if (OpFoldResult result = foldNeutral(*this, adaptor, 0)) return result;
  return foldBinary(adaptor.getLhs(), adaptor.getRhs(), getType(),
                    [](auto a, auto b) { return (a != 0) != (b != 0); });
}

#define ORIEL_COMPARISON(OpTy, symbol)                                                     \
  LogicalResult OpTy::inferReturnTypes(mlir::MLIRContext* context, MaybeLocation location, \
                                       Adaptor adaptor,                                    \
                                       llvm::SmallVectorImpl<mlir::Type>& results) {       \
    return inferCompare<OpTy>(context, location, adaptor, results);                        \
  }                                                                                        \
  OpFoldResult OpTy::fold(FoldAdaptor adaptor) {                                           \
    return foldBinary(adaptor.getLhs(), adaptor.getRhs(), getType(),                       \
                      [](auto a, auto b) { return a symbol b; });                          \
  }
ORIEL_COMPARISON(EqualOp, ==)
ORIEL_COMPARISON(LessOp, <)
ORIEL_COMPARISON(LessEqualOp, <=)
ORIEL_COMPARISON(GreaterOp, >)
ORIEL_COMPARISON(GreaterEqualOp, >=)
#undef ORIEL_COMPARISON

}  // namespace oriel::ir
