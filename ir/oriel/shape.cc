#include <cmath>

#include "ir/oriel/folding.h"
#include "ir/oriel/inference.h"
#include "ir/oriel/oriel.h"
#include "llvm/Support/CheckedArithmetic.h"

namespace oriel::ir {

using mlir::failure;
using mlir::LogicalResult;
using mlir::OpFoldResult;
using mlir::success;

// ---- constant, iota ----

LogicalResult ConstantOp::inferReturnTypes(mlir::MLIRContext*, MaybeLocation location,
                                           Adaptor adaptor,
                                           llvm::SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, getOperationName());
  auto type = llvm::dyn_cast<mlir::RankedTensorType>(adaptor.getValue().getShapedType());
  if (!type) {
    return context.refuse("expects a value of a tensor type, got ",
                          mlir::Type(adaptor.getValue().getShapedType()));
  }
  results.push_back(type);
  return success();
}

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValueAttr(); }

LogicalResult IotaOp::verify() {
  InferenceContext context(getLoc(), getOperationName());
  return context.expectDim("a dim", getDim(), getType().getRank());
}

OpFoldResult IotaOp::fold(FoldAdaptor) {
  auto type = getType();
  // `fold` may meet an op before the verifier does.
  if (!mayFoldTo(type, false) || getDim() < 0 || getDim() >= type.getRank()) return {};
  llvm::SmallVector<int64_t> strides(type.getRank(), 0);
  strides[getDim()] = 1;
  return visitElementType(type.getElementType(), [&](auto zero) -> OpFoldResult {
    using T = decltype(zero);
    std::vector<T> values;
    walkStrided<1>(type.getShape(), {strides}, [&](auto index) {
      values.push_back(static_cast<T>(index[0]));
      return true;
    });
    return writeElements<T>(type, values);
  });
}

// ---- reshape, transpose, broadcast ----

LogicalResult ReshapeOp::verify() {
  InferenceContext context(getLoc(), getOperationName());
  if (failed(context.expectElementType("a result", getResult(),
                                       getInput().getType().getElementType()))) {
    return failure();
  }
  llvm::ArrayRef<int64_t> from = shapeOf(getInput());
  llvm::ArrayRef<int64_t> to = getType().getShape();
  if (elementCount(from) == elementCount(to)) return success();
  return context.refuse("expects a result with as many elements as the input, got ", shapeText(to),
                        " for ", shapeText(from));
}

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getType()) return getInput();
  if (elementCount(shapeOf(getInput())) != elementCount(getType().getShape())) return {};
  if (auto constant = denseConstant(adaptor.getInput())) return constant.reshape(getType());
  if (auto inner = getInput().getDefiningOp<ReshapeOp>()) {
    setOperand(inner.getInput());
    return getResult();
  }
  return {};
}

LogicalResult TransposeOp::inferReturnTypes(mlir::MLIRContext*, MaybeLocation location,
                                            Adaptor adaptor,
                                            llvm::SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, getOperationName());
  llvm::ArrayRef<int64_t> input = shapeOf(adaptor.getInput());
  llvm::ArrayRef<int64_t> permutation = adaptor.getPermutation();
  llvm::SmallVector<bool> seen(input.size(), false);
  llvm::SmallVector<int64_t> shape;
  bool valid = permutation.size() == input.size();
  for (int64_t dim : permutation) {
    if (!valid || dim < 0 || dim >= static_cast<int64_t>(input.size()) || seen[dim]) {
      valid = false;
      break;
    }
    seen[dim] = true;
    shape.push_back(input[dim]);
  }
  if (!valid) {
    return context.refuse("expects a permutation of the ", input.size(), " dimensions, got ",
                          shapeText(permutation));
  }
  return context.addResult(shape, elementOf(adaptor.getInput()), results);
}

OpFoldResult TransposeOp::fold(FoldAdaptor adaptor) {
  llvm::ArrayRef<int64_t> permutation = getPermutation();
  if (llvm::equal(permutation, llvm::seq<int64_t>(permutation.size()))) return getInput();
  if (auto inner = getInput().getDefiningOp<TransposeOp>()) {
    llvm::SmallVector<int64_t> composed;
    for (int64_t dim : permutation) composed.push_back(inner.getPermutation()[dim]);
    setPermutation(composed);
    setOperand(inner.getInput());
    return getResult();
  }
  llvm::SmallVector<int64_t> own = rowMajorStrides(shapeOf(getInput()));
  llvm::SmallVector<int64_t> strides;
  for (int64_t dim : permutation) strides.push_back(own[dim]);
  return foldStrided(denseConstant(adaptor.getInput()), getType(), 0, strides);
}

LogicalResult BroadcastOp::verify() {
  InferenceContext context(getLoc(), getOperationName());
  if (failed(context.expectElementType("a result", getResult(),
                                       getInput().getType().getElementType()))) {
    return failure();
  }
  if (broadcastsTo(shapeOf(getInput()), getType().getShape())) return success();
  return context.refuse("expects an input that broadcasts to ", shapeText(getType().getShape()),
                        ", got ", shapeText(shapeOf(getInput())));
}

OpFoldResult BroadcastOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getType()) return getInput();
  if (auto inner = getInput().getDefiningOp<BroadcastOp>()) {
    setOperand(inner.getInput());
    return getResult();
  }
  if (!broadcastsTo(shapeOf(getInput()), getType().getShape())) return {};
  auto input = denseConstant(adaptor.getInput());
  if (input && !input.isSplat() && elementCount(getType().getShape()) > kMaxRepeatedIntegers) {
    return {};
  }
  return foldBroadcast(input, getType());
}

// ---- slice, pad, concat ----

LogicalResult SliceOp::inferReturnTypes(mlir::MLIRContext*, MaybeLocation location, Adaptor adaptor,
                                        llvm::SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, getOperationName());
  llvm::ArrayRef<int64_t> input = shapeOf(adaptor.getInput());
  llvm::ArrayRef<int64_t> starts = adaptor.getStarts();
  llvm::ArrayRef<int64_t> limits = adaptor.getLimits();
  llvm::ArrayRef<int64_t> strides = adaptor.getStrides();
  if (starts.size() != input.size() || limits.size() != input.size() ||
      strides.size() != input.size()) {
    return context.refuse("expects a start, a limit and a stride for each of the ", input.size(),
                          " dimensions, got ", starts.size(), ", ", limits.size(), " and ",
                          strides.size());
  }
  llvm::SmallVector<int64_t> shape;
  for (auto [size, start, limit, stride] : llvm::zip(input, starts, limits, strides)) {
    if (start < 0 || limit < start || size < limit || stride < 1) {
      return context.refuse("expects 0 <= start <= limit <= size and stride >= 1, got start ",
                            start, ", limit ", limit, ", size ", size, ", stride ", stride);
    }
    shape.push_back(start == limit ? 0 : (limit - start - 1) / stride + 1);
  }
  return context.addResult(shape, elementOf(adaptor.getInput()), results);
}

namespace {

// The operand of the concatenation that the slice is, null if it is none.
mlir::Value pieceAt(ConcatOp concat, SliceOp slice) {
  const uint64_t dim = concat.getDim();
  int64_t start = 0;
  for (mlir::Value piece : concat.getInputs()) {
    if (piece.getType() == slice.getType() && slice.getStarts()[dim] == start &&
        slice.getStrides()[dim] == 1) {
      return piece;
    }
    start += shapeOf(piece)[dim];
  }
  return {};
}

}  // namespace

OpFoldResult SliceOp::fold(FoldAdaptor adaptor) {
  // Of the same type, it has every element in its place.
  if (getInput().getType() == getType()) return getInput();
  if (auto concat = getInput().getDefiningOp<ConcatOp>()) {
    if (mlir::Value piece = pieceAt(concat, *this)) return piece;
  }
  auto input = denseConstant(adaptor.getInput());
  if (!input) return {};
  if (elementCount(getType().getShape()) == 0) return emptyElements(getType());
  llvm::SmallVector<int64_t> strides = rowMajorStrides(shapeOf(getInput()));
  int64_t base = 0;
  for (size_t i = 0; i < strides.size(); ++i) {
    base += getStarts()[i] * strides[i];
    // No step is made along a size of 1, and the product might not fit.
    strides[i] = getType().getDimSize(i) > 1 ? strides[i] * getStrides()[i] : 0;
  }
  return foldStrided(input, getType(), base, strides);
}

LogicalResult PadOp::inferReturnTypes(mlir::MLIRContext*, MaybeLocation location, Adaptor adaptor,
                                      llvm::SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, getOperationName());
  llvm::ArrayRef<int64_t> input = shapeOf(adaptor.getInput());
  for (llvm::ArrayRef<int64_t> counts :
       {adaptor.getLow(), adaptor.getHigh(), adaptor.getInterior()}) {
    if (counts.size() != input.size() ||
        !llvm::all_of(counts, [](int64_t v) { return v >= 0 && v <= kMaxElements; })) {
      return context.refuse("expects low, high and interior of one count from 0 to ", kMaxElements,
                            " for each of the ", input.size(), " dimensions, got ",
                            shapeText(counts));
    }
  }
  llvm::SmallVector<int64_t> shape;
  for (size_t i = 0; i < input.size(); ++i) {
    int64_t around = adaptor.getLow()[i] + adaptor.getHigh()[i];
    int64_t gaps = std::max<int64_t>(input[i] - 1, 0);
    std::optional<int64_t> inside = llvm::checkedMulAdd(gaps, adaptor.getInterior()[i], input[i]);
    std::optional<int64_t> size = inside ? llvm::checkedAdd(*inside, around) : std::nullopt;
    if (!size) return context.refuse("would have a result too large to count");
    shape.push_back(*size);
  }
  return context.addResult(shape, elementOf(adaptor.getInput()), results);
}

OpFoldResult PadOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getType()) return getInput();
  auto input = denseConstant(adaptor.getInput());
  if (!input || !mayFoldTo(getType(), false)) return {};
  if (elementCount(getType().getShape()) == 0) return emptyElements(getType());
  // What no int64_t holds is not converted to one.
  if (!(std::fabs(getValue()) < 0x1p63) && getType().getElementType().isInteger()) return {};
  llvm::SmallVector<int64_t> strides = rowMajorStrides(getType().getShape());
  int64_t base = 0;
  for (size_t i = 0; i < strides.size(); ++i) {
    base += getLow()[i] * strides[i];
    strides[i] *= getInterior()[i] + 1;
  }
  return visitElementType(input.getElementType(), [&](auto zero) -> OpFoldResult {
    using T = decltype(zero);
    Elements<T> elements = readElements<T>(input);
    std::vector<T> values(getType().getNumElements(), static_cast<T>(getValue()));
    int64_t from = 0;
    walkStrided<1>(shapeOf(getInput()), {strides}, [&](auto to) {
      values[base + to[0]] = elements[from++];
      return true;
    });
    return writeElements<T>(getType(), values);
  });
}

LogicalResult ConcatOp::inferReturnTypes(mlir::MLIRContext*, MaybeLocation location,
                                         Adaptor adaptor,
                                         llvm::SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, getOperationName());
  if (adaptor.getInputs().empty()) return context.refuse("expects at least one operand, got none");
  mlir::RankedTensorType first = tensorType(adaptor.getInputs().front());
  int64_t dim = adaptor.getDim();
  if (failed(context.expectDim("a dim", dim, first.getRank()))) return failure();
  llvm::SmallVector<int64_t> shape(first.getShape());
  for (mlir::Value input : adaptor.getInputs().drop_front()) {
    llvm::ArrayRef<int64_t> other = shapeOf(input);
    llvm::SmallVector<int64_t> expected(first.getShape());
    if (other.size() == expected.size()) expected[dim] = other[dim];
    if (llvm::ArrayRef<int64_t>(expected) != other) {
      return context.refuse("expects operands that differ in dimension ", dim, " only, got ",
                            shapeText(first.getShape()), " and ", shapeText(other));
    }
    if (failed(context.expectElementType("operands", input, first.getElementType()))) {
      return failure();
    }
    std::optional<int64_t> size = llvm::checkedAdd(shape[dim], other[dim]);
    if (!size) return context.refuse("would have a result too large to count");
    shape[dim] = *size;
  }
  return context.addResult(shape, first.getElementType(), results);
}

OpFoldResult ConcatOp::fold(FoldAdaptor adaptor) {
  // The others are empty, as the past of a key-value cache.
  for (mlir::Value input : getInputs()) {
    if (input.getType() == getType()) return input;
  }
  if (!mayFoldTo(getType(), false)) return {};
  llvm::SmallVector<mlir::DenseElementsAttr> inputs;
  for (mlir::Attribute input : adaptor.getInputs()) inputs.push_back(denseConstant(input));
  if (!llvm::all_of(inputs, [](mlir::DenseElementsAttr input) { return bool(input); })) return {};
  if (elementCount(getType().getShape()) == 0) return emptyElements(getType());
  llvm::SmallVector<int64_t> strides = rowMajorStrides(getType().getShape());
  return visitElementType(getType().getElementType(), [&](auto zero) -> OpFoldResult {
    using T = decltype(zero);
    std::vector<T> values(getType().getNumElements());
    int64_t base = 0;
    for (mlir::DenseElementsAttr input : inputs) {
      Elements<T> elements = readElements<T>(input);
      int64_t from = 0;
      walkStrided<1>(input.getType().getShape(), {strides}, [&](auto to) {
        values[base + to[0]] = elements[from++];
        return true;
      });
      base += input.getType().getDimSize(getDim()) * strides[getDim()];
    }
    return writeElements<T>(getType(), values);
  });
}

}  // namespace oriel::ir
