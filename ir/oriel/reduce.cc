// Ops of shape.td that run along dimensions: reductions, running sum, argmax and the place of a
// value.
#include <cmath>
#include <limits>

#include "ir/oriel/folding.h"
#include "ir/oriel/inference.h"
#include "ir/oriel/oriel.h"

namespace oriel::ir {

using mlir::failure;
using mlir::LogicalResult;
using mlir::OpFoldResult;

namespace {

llvm::SmallVector<int64_t> reducedShape(llvm::ArrayRef<int64_t> input, llvm::ArrayRef<int64_t> dims,
                                        bool keepDims) {
  llvm::SmallVector<int64_t> shape;
  for (size_t i = 0; i < input.size(); ++i) {
    if (!llvm::is_contained(dims, static_cast<int64_t>(i))) {
      shape.push_back(input[i]);
    } else if (keepDims) {
      shape.push_back(1);
    }
  }
  return shape;
}

template <typename OpTy>
LogicalResult inferReduce(MaybeLocation location, typename OpTy::Adaptor adaptor,
                          llvm::SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, OpTy::getOperationName());
  llvm::ArrayRef<int64_t> input = shapeOf(adaptor.getInput());
  int64_t previous = -1;
  for (int64_t dim : adaptor.getDims()) {
    if (dim <= previous || dim >= static_cast<int64_t>(input.size())) {
      return context.refuse("expects dims that ascend from 0 to at most ",
                            static_cast<int64_t>(input.size()) - 1, ", got ",
                            shapeText(adaptor.getDims()));
    }
    previous = dim;
  }
  return context.addResult(reducedShape(input, adaptor.getDims(), adaptor.getKeepDims()),
                           elementOf(adaptor.getInput()), results);
}

// The kinds of reduction, on the arithmetic types of folding.h. Floats accumulate in double, so
// that the folded value is at least as good as the kernel's.
enum class Reduction { kSum, kMean, kMax, kMin, kProd };

template <typename A>
A combine(Reduction reduction, A a, A b) {
  switch (reduction) {
    case Reduction::kSum:
    case Reduction::kMean:
      if constexpr (std::is_integral_v<A>) return static_cast<A>(uint64_t(a) + uint64_t(b));
      return a + b;
    case Reduction::kProd:
      if constexpr (std::is_integral_v<A>) return static_cast<A>(uint64_t(a) * uint64_t(b));
      return a * b;
    case Reduction::kMax:
      return a > b || a != a ? a : b;
    case Reduction::kMin:
      return a < b || a != a ? a : b;
  }
  llvm_unreachable("unknown reduction");
}

template <typename OpTy>
OpFoldResult foldReduce(OpTy op, mlir::Attribute operand, Reduction reduction) {
  llvm::ArrayRef<int64_t> shape = shapeOf(op.getInput());
  mlir::RankedTensorType type = op.getType();
  if (type.getElementType() != elementOf(op.getInput())) return {};
  // Along no dimension each is the identity.
  if (op.getDims().empty()) return op.getInput();
  mlir::DenseElementsAttr input = denseConstant(operand);
  // A splat is walked like the rest, so its size is bounded too.
  if (!input || !mayFoldTo(type, false) ||
      (input.isSplat() && !mayFoldTo(op.getInput().getType(), false))) {
    return {};
  }
  llvm::SmallVector<int64_t> sizes;
  for (int64_t dim : op.getDims()) sizes.push_back(shape[dim]);
  int64_t count = boundedProduct(sizes);
  bool hasNeutral = reduction == Reduction::kSum || reduction == Reduction::kProd;
  if (count == 0 && !hasNeutral) return {};
  // Where each element of the input goes: stride 0 along what is reduced.
  llvm::SmallVector<int64_t> strides =
      broadcastStrides(reducedShape(shape, op.getDims(), /*keepDims=*/true), shape);
  return visitElementType(input.getElementType(), [&](auto zero) -> OpFoldResult {
    using T = decltype(zero);
    using A = std::conditional_t<std::is_integral_v<T>, int64_t, double>;
    Elements<T> elements = readElements<T>(input);
    std::vector<A> sums(type.getNumElements(), reduction == Reduction::kProd ? 1 : 0);
    std::vector<bool> begun(sums.size(), hasNeutral);
    int64_t from = 0;
    walkStrided<1>(shape, {strides}, [&](auto to) {
      A value = elements[from++];
      A& sum = sums[to[0]];
      sum = begun[to[0]] ? combine(reduction, sum, value) : value;
      begun[to[0]] = true;
      return true;
    });
    if (reduction == Reduction::kMean) {
      for (A& sum : sums) sum /= static_cast<A>(count);
    }
    return writeElements<T>(type, std::vector<T>(sums.begin(), sums.end()));
  });
}

}  // namespace

#define ORIEL_REDUCTION(OpTy, reduction)                                             \
  LogicalResult OpTy::inferReturnTypes(mlir::MLIRContext*, MaybeLocation location,   \
                                       Adaptor adaptor,                              \
                                       llvm::SmallVectorImpl<mlir::Type>& results) { \
    return inferReduce<OpTy>(location, adaptor, results);                            \
  }                                                                                  \
  int64_t OpTy::getFlops() { return elementCount(shapeOf(getInput())); }             \
  OpFoldResult OpTy::fold(FoldAdaptor adaptor) {                                     \
    return foldReduce(*this, adaptor.getInput(), reduction);                         \
  }
ORIEL_REDUCTION(ReduceSumOp, Reduction::kSum)
ORIEL_REDUCTION(ReduceMeanOp, Reduction::kMean)
ORIEL_REDUCTION(ReduceMaxOp, Reduction::kMax)
ORIEL_REDUCTION(ReduceMinOp, Reduction::kMin)
ORIEL_REDUCTION(ReduceProdOp, Reduction::kProd)
#undef ORIEL_REDUCTION

bool ReduceSumOp::isCompatibleReturnTypes(mlir::TypeRange inferred, mlir::TypeRange actual) {
  return areTypesOrWide(inferred, actual);
}

LogicalResult CumsumOp::verify() {
  InferenceContext context(getLoc(), getOperationName());
  return context.expectDim("a dim", getDim(), getType().getRank());
}

OpFoldResult CumsumOp::fold(FoldAdaptor adaptor) {
  mlir::DenseElementsAttr input = denseConstant(adaptor.getInput());
  if (isUniform(input, 0)) return input;
  if (!input || !mayFoldTo(getType(), false)) return {};
  llvm::ArrayRef<int64_t> shape = getType().getShape();
  if (input.isSplat() && elementCount(shape) > kMaxRepeatedIntegers) return {};
  if (getDim() < 0 || getDim() >= getType().getRank()) return {};  // not verified yet
  if (elementCount(shape) == 0) return emptyElements(getType());
  int64_t length = shape[getDim()];
  int64_t outer = elementCount(shape.take_front(getDim()));
  int64_t inner = elementCount(shape.drop_front(getDim() + 1));
  return visitElementType(input.getElementType(), [&](auto zero) -> OpFoldResult {
    using T = decltype(zero);
    using A = std::conditional_t<std::is_integral_v<T>, int64_t, double>;
    Elements<T> elements = readElements<T>(input);
    std::vector<T> values(getType().getNumElements());
    for (int64_t row = 0; row < outer * inner; ++row) {
      int64_t base = row / inner * length * inner + row % inner;
      A sum = 0;
      for (int64_t step = 0; step < length; ++step) {
        int64_t at = base + (getReverse() ? length - 1 - step : step) * inner;
        A next = combine<A>(Reduction::kSum, sum, elements[at]);
        values[at] = static_cast<T>(getExclusive() ? sum : next);
        sum = next;
      }
    }
    return writeElements<T>(getType(), values);
  });
}

LogicalResult ArgmaxOp::inferReturnTypes(mlir::MLIRContext* mlirContext, MaybeLocation location,
                                         Adaptor adaptor,
                                         llvm::SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, getOperationName());
  llvm::ArrayRef<int64_t> input = shapeOf(adaptor.getInput());
  int64_t dim = adaptor.getDim();
  if (failed(context.expectDim("a dim", dim, input.size()))) return failure();
  if (input[dim] == 0) {
    return context.refuse("expects an element along dimension ", dim, ", got the shape ",
                          shapeText(input));
  }
  return context.addResult(reducedShape(input, dim, adaptor.getKeepDims()),
                           mlir::IntegerType::get(mlirContext, 64), results);
}

LogicalResult RemainingFromOp::inferReturnTypes(mlir::MLIRContext* mlirContext,
                                                MaybeLocation location, Adaptor adaptor,
                                                llvm::SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, getOperationName());
  llvm::ArrayRef<int64_t> input = shapeOf(adaptor.getInput());
  if (input.empty()) return context.refuse("expects an input of rank 1 at least, got rank 0");
  if (failed(context.expectShape("a value", adaptor.getValue(), input.drop_back())) ||
      failed(context.expectPiece(adaptor.getFirst(), "size", adaptor.getSize(), input.back()))) {
    return failure();
  }
  return context.addResult(input.drop_back(), mlir::IntegerType::get(mlirContext, 64), results);
}

}  // namespace oriel::ir
