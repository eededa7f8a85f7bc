// Constant folding: reads constants into arithmetic types, and writes them back.
//
// Arithmetic is done in float for f32, f16 and bf16, in double for f64, and in int64_t (that
// wraps) for integers and booleans; results are rounded or truncated to the element type.
//
//   OpFoldResult ExpOp::fold(FoldAdaptor adaptor) {
//     return foldUnary(adaptor.getInput(), getType(), [](auto x) { return std::exp(double(x)); });
//   }
#ifndef ORIEL_IR_ORIEL_FOLDING_H_
#define ORIEL_IR_ORIEL_FOLDING_H_

#include <array>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <vector>

#include "ir/interfaces/interfaces.h"
#include "ir/oriel/inference.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"

namespace oriel::ir {

// A fold never makes a constant with more elements than this, unless all of them are equal:
// it would only move work from the run to the plan's size.
inline constexpr int64_t kMaxFoldedElements = int64_t{1} << 16;
// Integers and booleans are mostly positions and masks, that raise makes a structure of: up to
// those of 4,096 queries and as many keys.
inline constexpr int64_t kMaxFoldedIntegers = int64_t{1} << 24;
// What is broadcast, computed of operands that repeat each other, or summed up of one number, and
// is no mask, is mostly the positions of each sample: 256 with 4,096 of them. What more samples
// have in common is told without their elements (passes/raise/affine_index.h).
inline constexpr int64_t kMaxRepeatedIntegers = int64_t{1} << 20;

// Whether a fold may make this constant.
inline bool mayFoldTo(mlir::RankedTensorType type, bool uniform) {
  int64_t most =
      llvm::isa<mlir::IntegerType>(type.getElementType()) ? kMaxFoldedIntegers : kMaxFoldedElements;
  return uniform || elementCount(type.getShape()) <= most;
}

// The same, of an op on operands that broadcast to the type.
bool mayFoldTo(mlir::RankedTensorType type, llvm::ArrayRef<mlir::DenseElementsAttr> operands);

// The elements of a constant in row-major order; a splat keeps one.
template <typename T>
struct Elements {
  std::vector<T> values;
  bool splat = false;

  T operator[](int64_t index) const { return values[splat ? 0 : index]; }
};

// T is float, double or int64_t, and fits the element type: see visitElementType. An i1 gives
// 0 or 1.
template <typename T>
Elements<T> readElements(mlir::DenseElementsAttr constant);

// As many values as the type has elements, or one for all. A double or float may be written to
// any float type (rounded to nearest), an int64_t to any integer type (truncated; to i1 by
// comparison with zero).
template <typename T>
mlir::DenseElementsAttr writeElements(mlir::RankedTensorType type, llvm::ArrayRef<T> values);

// Calls fn with a zero of the arithmetic type for `elementType`.
template <typename Fn>
auto visitElementType(mlir::Type elementType, Fn fn) {
  if (llvm::isa<mlir::IntegerType>(elementType)) return fn(int64_t{0});
  if (elementType.isF64()) return fn(double{0});
  return fn(float{0});
}

// The constant of a type without elements.
inline mlir::DenseElementsAttr emptyElements(mlir::RankedTensorType type) {
  return mlir::DenseElementsAttr::get(type, llvm::ArrayRef<mlir::Attribute>());
}

// Null unless the operand is a constant whose elements are at hand and numbers.
inline mlir::DenseElementsAttr denseConstant(mlir::Attribute operand) {
  auto constant = llvm::dyn_cast_or_null<mlir::DenseElementsAttr>(operand);
  return constant && constant.getElementType().isIntOrFloat() ? constant : nullptr;
}

// `value` if it has the op's result type, so that it can stand for the result.
template <typename OpTy>
mlir::OpFoldResult asResult(OpTy op, mlir::Value value) {
  return value.getType() == op.getType() ? mlir::OpFoldResult(value) : mlir::OpFoldResult();
}

// Whether every element of the constant equals `value`. False for a null attribute.
bool isUniform(mlir::Attribute operand, double value);

// Elements from one of the next along each dimension, in row-major order.
llvm::SmallVector<int64_t> rowMajorStrides(llvm::ArrayRef<int64_t> shape);
// The same for a tensor of shape `from` read under the index of a tensor of shape `to`, to which
// it broadcasts: 0 where it repeats.
llvm::SmallVector<int64_t> broadcastStrides(llvm::ArrayRef<int64_t> from,
                                            llvm::ArrayRef<int64_t> to);

// Calls fn(offsets) for each index of `shape` in row-major order, where offsets[j] is the scalar
// product of the index with strides[j]. Stops and returns false as soon as fn does.
template <size_t N, typename Fn>
bool walkStrided(llvm::ArrayRef<int64_t> shape,
                 const std::array<llvm::SmallVector<int64_t>, N>& strides, Fn fn) {
  if (elementCount(shape) == 0) return true;
  llvm::SmallVector<int64_t> index(shape.size(), 0);
  std::array<int64_t, N> offsets{};
  while (true) {
    if (!fn(offsets)) return false;
    int64_t dim = static_cast<int64_t>(shape.size()) - 1;
    for (; dim >= 0; --dim) {
      for (size_t j = 0; j < N; ++j) offsets[j] += strides[j][dim];
      if (++index[dim] < shape[dim]) break;
      for (size_t j = 0; j < N; ++j) offsets[j] -= shape[dim] * strides[j][dim];
      index[dim] = 0;
    }
    if (dim < 0) return true;
  }
}

// The constant as it is broadcast to the type, of any size that a fold may make.
mlir::Attribute foldBroadcast(mlir::DenseElementsAttr source, mlir::RankedTensorType type);

// The constant whose element at an index is source[base + Σ index[d] strides[d]]. Null if
// `source` is null or the result too large.
mlir::Attribute foldStrided(mlir::DenseElementsAttr source, mlir::RankedTensorType type,
                            int64_t base, llvm::ArrayRef<int64_t> strides);

// result[i] = fn(input[i]), the result converted to input's arithmetic type.
template <typename Fn>
mlir::OpFoldResult foldUnary(mlir::Attribute input, mlir::RankedTensorType type, Fn fn) {
  mlir::DenseElementsAttr constant = denseConstant(input);
  if (!constant || !mayFoldTo(type, constant.isSplat())) return {};
  return visitElementType(constant.getElementType(), [&](auto zero) -> mlir::OpFoldResult {
    using T = decltype(zero);
    std::vector<T> values = readElements<T>(constant).values;
    for (T& value : values) value = static_cast<T>(fn(value));
    return writeElements<T>(type, values);
  });
}

// result[i] = fn(lhs[i], rhs[i]) on broadcast operands of one element type. fn gives a value of
// their arithmetic type or a bool, or an optional of it: nothing is folded where one is empty.
template <typename Fn>
mlir::OpFoldResult foldBinary(mlir::Attribute lhs, mlir::Attribute rhs, mlir::RankedTensorType type,
                              Fn fn) {
  mlir::DenseElementsAttr left = denseConstant(lhs);
  mlir::DenseElementsAttr right = denseConstant(rhs);
  if (!left || !right) return {};
  if (!mayFoldTo(type, {left, right})) return {};
  const bool splat = left.isSplat() && right.isSplat();
  return visitElementType(left.getElementType(), [&](auto zero) -> mlir::OpFoldResult {
    using T = decltype(zero);
    using R = std::conditional_t<std::is_same_v<decltype(fn(zero, zero)), bool>, int64_t, T>;
    Elements<T> a = readElements<T>(left);
    Elements<T> b = readElements<T>(right);
    std::vector<R> values;
    auto append = [&](T x, T y) {
      std::optional<R> value = fn(x, y);
      if (value) values.push_back(*value);
      return value.has_value();
    };
    bool folded =
        splat ? append(a[0], b[0])
              : walkStrided<2>(type.getShape(),
                               {broadcastStrides(left.getType().getShape(), type.getShape()),
                                broadcastStrides(right.getType().getShape(), type.getShape())},
                               [&](auto offsets) { return append(a[offsets[0]], b[offsets[1]]); });
    if (!folded) return {};
    return writeElements<R>(type, values);
  });
}

}  // namespace oriel::ir

#endif  // ORIEL_IR_ORIEL_FOLDING_H_
