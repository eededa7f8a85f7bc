#include "frontend/value_builder.h"

#include <cmath>

#include "ir/oriel/folding.h"
#include "ir/oriel/inference.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Verifier.h"

namespace oriel {

using llvm::ArrayRef;
using mlir::DenseElementsAttr;
using mlir::RankedTensorType;
using mlir::Value;

Value ValueBuilder::finish(mlir::Operation* op) {
  if (failed(mlir::verify(op))) {
    op->erase();
    return {};
  }
  llvm::SmallVector<Value> folded;
  if (succeeded(builder_.tryFold(op, folded)) && !folded.empty()) {
    op->erase();
    return folded.front();
  }
  return op->getResult(0);
}

RankedTensorType ValueBuilder::tensorType(ArrayRef<int64_t> shape, mlir::Type element) const {
  if (std::string problem = ir::shapeProblem(shape); !problem.empty()) {
    mlir::emitError(location_) << "makes a tensor of the shape " << ir::shapeText(shape)
                               << ", which has " << problem;
    return {};
  }
  return RankedTensorType::get(shape, element);
}

Value ValueBuilder::constant(DenseElementsAttr value) {
  return createTyped<ir::ConstantOp>(value.getType(), mlir::ElementsAttr(value));
}

Value ValueBuilder::constantOf(ArrayRef<int64_t> values) {
  return constantOf(values, {static_cast<int64_t>(values.size())});
}

Value ValueBuilder::constantOf(ArrayRef<int64_t> values, ArrayRef<int64_t> shape) {
  auto type = RankedTensorType::get(shape, builder_.getI64Type());
  return constant(DenseElementsAttr::get(type, values));
}

Value ValueBuilder::boolConstant(ArrayRef<bool> values, ArrayRef<int64_t> shape) {
  auto type = RankedTensorType::get(shape, builder_.getI1Type());
  return constant(DenseElementsAttr::get(type, values));
}

Value ValueBuilder::scalarLike(Value like, double value) {
  return like ? splat(RankedTensorType::get({}, elementOf(like)), value) : Value();
}

Value ValueBuilder::splat(RankedTensorType type, double value) {
  if (!type) {
    return {};
  }
  mlir::Type element = type.getElementType();
  mlir::Attribute attribute;
  if (llvm::isa<mlir::FloatType>(element)) {
    attribute = mlir::FloatAttr::get(element, value);
  } else if (element.isInteger(1)) {
    attribute = mlir::BoolAttr::get(builder_.getContext(), value != 0);
  } else if (std::abs(value) < 0x1p63) {
    attribute = mlir::IntegerAttr::get(element, static_cast<int64_t>(value));
  } else {  // NaN too
    mlir::emitError(location_) << "uses the number " << value << " with elements of type "
                               << element;
    return {};
  }
  return constant(DenseElementsAttr::get(type, attribute));
}

Value ValueBuilder::reshape(Value input, ArrayRef<int64_t> shape) {
  if (!input || shapeOf(input) == shape) {
    return input;
  }
  return createTyped<ir::ReshapeOp>(tensorType(shape, elementOf(input)), input);
}

Value ValueBuilder::broadcast(Value input, ArrayRef<int64_t> shape) {
  if (!input || shapeOf(input) == shape) {
    return input;
  }
  return createTyped<ir::BroadcastOp>(tensorType(shape, elementOf(input)), input);
}

Value ValueBuilder::transpose(Value input, ArrayRef<int64_t> permutation) {
  return create<ir::TransposeOp>(input, permutation);
}

Value ValueBuilder::swapLastTwo(Value input) {
  if (!input) {
    return {};
  }
  auto permutation = llvm::to_vector(llvm::seq<int64_t>(0, rankOf(input)));
  std::swap(permutation[permutation.size() - 1], permutation[permutation.size() - 2]);
  return transpose(input, permutation);
}

Value ValueBuilder::cast(Value input, mlir::Type elementType) {
  if (!input || elementOf(input) == elementType) {
    return input;
  }
  return createTyped<ir::CastOp>(RankedTensorType::get(shapeOf(input), elementType), input);
}

Value ValueBuilder::slice(Value input, ArrayRef<int64_t> starts, ArrayRef<int64_t> limits) {
  Ints strides(starts.size(), 1);
  return create<ir::SliceOp>(input, starts, limits, ArrayRef<int64_t>(strides));
}

Value ValueBuilder::sliceDim(Value input, int64_t dim, int64_t start, int64_t limit) {
  if (!input) {
    return {};
  }
  Ints starts(rankOf(input), 0), limits(shapeOf(input));
  starts[dim] = start;
  limits[dim] = limit;
  return slice(input, starts, limits);
}

Value ValueBuilder::gather(Value input, Value indices, int64_t dim) {
  return create<ir::GatherOp>(input, indices, dim, OptionalValue{});
}

Value ValueBuilder::gatherRows(Value input, Value indices, int64_t batch) {
  return create<ir::GatherOp>(input, indices, batch, OptionalValue{}, /*rows=*/int64_t{0}, batch);
}

Value ValueBuilder::concat(ArrayRef<Value> inputs, int64_t dim) {
  if (inputs.size() == 1) {
    return inputs.front();
  }
  return create<ir::ConcatOp>(mlir::ValueRange(inputs), dim);
}

Value ValueBuilder::clamp(Value input, double low, double high) {
  return create<ir::MinOp>(create<ir::MaxOp>(input, scalarLike(input, low)),
                           scalarLike(input, high));
}

namespace {

int64_t toInt(mlir::Type elementType, const llvm::APInt& element) {
  const bool isSigned = !elementType.isInteger(1) && !elementType.isUnsignedInteger();
  return isSigned ? element.getSExtValue() : static_cast<int64_t>(element.getZExtValue());
}

// What the value is, if it is made of constants by no more than so many ops. They may be there only
// because positions of many samples are not folded.
mlir::Attribute constantOf(Value value, int& opsLeft) {
  mlir::Attribute constant;
  if (mlir::matchPattern(value, mlir::m_Constant(&constant))) return constant;
  mlir::Operation* op = value.getDefiningOp();
  if (!op || op->getNumResults() != 1 || opsLeft-- <= 0) return {};
  // As large as the result: so many elements are folded.
  const bool isRepeated = op->hasTrait<ir::Pointwise>() || llvm::isa<ir::BroadcastOp>(op);
  mlir::RankedTensorType type = ir::tensorType(value);
  llvm::SmallVector<mlir::Attribute> operands;
  for (Value operand : op->getOperands()) {
    DenseElementsAttr known = ir::denseConstant(constantOf(operand, opsLeft));
    if (!known) return {};
    operands.push_back(isRepeated ? ir::foldBroadcast(known, type.clone(known.getElementType()))
                                  : known);
    if (!operands.back()) return {};
  }
  if (llvm::isa<ir::BroadcastOp>(op)) return operands[0];
  llvm::SmallVector<mlir::OpFoldResult> results;
  if (failed(op->fold(operands, results)) || results.size() != 1) return {};
  if (auto other = llvm::dyn_cast<Value>(results[0])) {
    return other == value ? mlir::Attribute() : constantOf(other, opsLeft);
  }
  return llvm::cast<mlir::Attribute>(results[0]);
}

std::optional<Ints> intsOf(DenseElementsAttr elements) {
  if (!elements || !elements.getElementType().isIntOrIndex() ||
      elements.getNumElements() > kMaxEnumerated) {
    return std::nullopt;
  }
  if (elements.getElementType().isSignlessInteger(64)) {
    const auto values = elements.getValues<int64_t>();
    return Ints(values.begin(), values.end());
  }
  Ints ints;
  ints.reserve(elements.getNumElements());
  for (const llvm::APInt& element : elements.getValues<llvm::APInt>()) {
    ints.push_back(toInt(elements.getElementType(), element));
  }
  return ints;
}

}  // namespace

std::optional<Ints> constantIntsOf(Value value) {
  DenseElementsAttr elements;
  mlir::matchPattern(value, mlir::m_Constant(&elements));
  return intsOf(elements);
}

std::optional<Ints> computedIntsOf(Value value) {
  constexpr int kMaxOps = 64;
  int opsLeft = kMaxOps;
  return intsOf(ir::denseConstant(constantOf(value, opsLeft)));
}

std::optional<double> constantScalarOf(Value value) {
  DenseElementsAttr elements;
  if (!mlir::matchPattern(value, mlir::m_Constant(&elements)) || elements.empty() ||
      !elements.isSplat()) {
    return std::nullopt;
  }
  if (llvm::isa<mlir::FloatType>(elements.getElementType())) {
    llvm::APFloat number = elements.getSplatValue<llvm::APFloat>();
    bool losesInfo;
    number.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    return number.convertToDouble();
  }
  // Not by constantIntsOf(), which may be too many.
  return static_cast<double>(
      toInt(elements.getElementType(), elements.getSplatValue<llvm::APInt>()));
}

}  // namespace oriel
