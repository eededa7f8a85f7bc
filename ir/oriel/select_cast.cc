// Ops of elementwise.td that are no arithmetic: choice and conversion.
#include <cmath>

#include "ir/oriel/folding.h"
#include "ir/oriel/inference.h"
#include "ir/oriel/oriel.h"

namespace oriel::ir {

using mlir::failure;
using mlir::LogicalResult;
using mlir::OpFoldResult;

LogicalResult SelectOp::inferReturnTypes(mlir::MLIRContext*, MaybeLocation location,
                                         Adaptor adaptor,
                                         llvm::SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, getOperationName());
  mlir::Type elementType = elementOf(adaptor.getOnTrue());
  if (failed(context.expectElementType("an on_false", adaptor.getOnFalse(), elementType))) {
    return failure();
  }
  auto shape = broadcastShapes(shapeOf(adaptor.getOnTrue()), shapeOf(adaptor.getOnFalse()));
  if (succeeded(shape)) shape = broadcastShapes(*shape, shapeOf(adaptor.getCondition()));
  if (failed(shape)) {
    return context.refuse("expects operands that broadcast to a common shape, got ",
                          shapeText(shapeOf(adaptor.getCondition())), ", ",
                          shapeText(shapeOf(adaptor.getOnTrue())), " and ",
                          shapeText(shapeOf(adaptor.getOnFalse())));
  }
  return context.addResult(*shape, elementType, results);
}

OpFoldResult SelectOp::fold(FoldAdaptor adaptor) {
  if (getOnTrue() == getOnFalse()) {
    if (OpFoldResult result = asResult(*this, getOnTrue())) return result;
  }
  for (auto [value, chosen] : {std::pair(1, getOnTrue()), {0, getOnFalse()}}) {
    if (!isUniform(adaptor.getCondition(), value)) continue;
    if (OpFoldResult result = asResult(*this, chosen)) return result;
  }
  auto condition = denseConstant(adaptor.getCondition());
  auto onTrue = denseConstant(adaptor.getOnTrue());
  auto onFalse = denseConstant(adaptor.getOnFalse());
  if (!condition || !onTrue || !onFalse) return {};
  if (!mayFoldTo(getType(), {condition, onTrue, onFalse})) return {};
  const bool splat = condition.isSplat() && onTrue.isSplat() && onFalse.isSplat();
  llvm::ArrayRef<int64_t> shape = getType().getShape();
  return visitElementType(onTrue.getElementType(), [&](auto zero) -> OpFoldResult {
    using T = decltype(zero);
    Elements<int64_t> c = readElements<int64_t>(condition);
    Elements<T> a = readElements<T>(onTrue);
    Elements<T> b = readElements<T>(onFalse);
    if (splat) return writeElements<T>(getType(), c[0] ? a[0] : b[0]);
    std::vector<T> values;
    walkStrided<3>(shape,
                   {broadcastStrides(condition.getType().getShape(), shape),
                    broadcastStrides(onTrue.getType().getShape(), shape),
                    broadcastStrides(onFalse.getType().getShape(), shape)},
                   [&](auto at) {
                     values.push_back(c[at[0]] ? a[at[1]] : b[at[2]]);
                     return true;
                   });
    return writeElements<T>(getType(), values);
  });
}

LogicalResult CastOp::verify() {
  return InferenceContext(getLoc(), getOperationName())
      .expectShape("a result", getResult(), shapeOf(getInput()));
}

namespace {

// `value` as the integer type has it; none where it does not fit.
template <typename T>
std::optional<int64_t> toInteger(T value, mlir::IntegerType type) {
  if (type.getWidth() == 1) return value != 0;
  if constexpr (std::is_integral_v<T>) {
    return value;  // written with the type's width, which wraps
  } else {
    // The bounds are powers of two, hence exact; a NaN is refused.
    double magnitude = std::ldexp(1.0, type.isUnsigned() ? type.getWidth() : type.getWidth() - 1);
    double whole = std::trunc(double(value));
    if (!(whole >= (type.isUnsigned() ? 0 : -magnitude) && whole < magnitude)) return std::nullopt;
    return static_cast<int64_t>(whole);
  }
}

template <typename From, typename To>
OpFoldResult castElements(const Elements<From>& from, mlir::RankedTensorType type) {
  std::vector<To> values;
  for (From value : from.values) {
    if constexpr (std::is_integral_v<To>) {
      auto converted = toInteger(value, llvm::cast<mlir::IntegerType>(type.getElementType()));
      if (!converted) return {};
      values.push_back(*converted);
    } else {
      values.push_back(static_cast<To>(value));
    }
  }
  return writeElements<To>(type, values);
}

}  // namespace

OpFoldResult CastOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getType()) return getInput();
  auto input = denseConstant(adaptor.getInput());
  if (!input || !mayFoldTo(getType(), input.isSplat())) return {};
  if (shapeOf(getInput()) != getType().getShape()) return {};  // not verified yet
  return visitElementType(input.getElementType(), [&](auto zero) -> OpFoldResult {
    Elements<decltype(zero)> from = readElements<decltype(zero)>(input);
    mlir::Type to = getType().getElementType();
    if (llvm::isa<mlir::IntegerType>(to)) {
      return castElements<decltype(zero), int64_t>(from, getType());
    }
    if (to.isF32()) return castElements<decltype(zero), float>(from, getType());
    // The narrow types are rounded once, from double.
    return castElements<decltype(zero), double>(from, getType());
  });
}

}  // namespace oriel::ir
