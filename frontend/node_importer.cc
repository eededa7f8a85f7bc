#include "frontend/node_importer.h"

#include "frontend/node_location.h"
#include "frontend/tensor_data.h"
#include "ir/oriel/inference.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Verifier.h"
#include "onnx/onnx_pb.h"

namespace oriel {

using llvm::ArrayRef;
using llvm::StringRef;
using mlir::DenseElementsAttr;
using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::RankedTensorType;
using mlir::success;
using mlir::Value;

NodeImporter::NodeImporter(const onnx::NodeProto& node, int64_t version, ArrayRef<Value> operands,
                           mlir::OpBuilder& builder, StringRef folder)
    : node_(node),
      version_(version),
      operands_(operands),
      builder_(builder),
      folder_(folder),
      location_(nodeLocation(builder.getContext(), node)) {}

// --- The node

StringRef NodeImporter::opType() const { return node_.op_type(); }

mlir::InFlightDiagnostic NodeImporter::error() const {
  auto diagnostic = mlir::emitError(location_);
  diagnostic << "node \"" << nodeName(node_) << "\" (" << node_.op_type() << "): ";
  return diagnostic;
}

unsigned NodeImporter::numResults() const { return node_.output_size(); }

bool NodeImporter::hasOperand(unsigned index) const {
  return index < operands_.size() && operands_[index];
}

bool NodeImporter::hasResult(unsigned index) const {
  return index < numResults() && !node_.output(index).empty();
}

Value NodeImporter::operand(unsigned index) const {
  if (!hasOperand(index)) {
    error() << "operand " << index << " is missing";
    return {};
  }
  return operands_[index];
}

Value NodeImporter::optionalOperand(unsigned index) const {
  return hasOperand(index) ? operands_[index] : Value();
}

const onnx::AttributeProto* NodeImporter::findAttr(StringRef name) const {
  for (const auto& attribute : node_.attribute()) {
    if (name == attribute.name()) {
      return &attribute;
    }
  }
  return nullptr;
}

bool NodeImporter::hasAttr(StringRef name) const { return findAttr(name) != nullptr; }

int64_t NodeImporter::attrInt(StringRef name, int64_t otherwise) const {
  const auto* attribute = findAttr(name);
  return attribute ? attribute->i() : otherwise;
}

double NodeImporter::attrFloat(StringRef name, double otherwise) const {
  const auto* attribute = findAttr(name);
  return attribute ? attribute->f() : otherwise;
}

std::string NodeImporter::attrString(StringRef name, StringRef otherwise) const {
  const auto* attribute = findAttr(name);
  return attribute ? attribute->s() : otherwise.str();
}

std::optional<Ints> NodeImporter::attrInts(StringRef name) const {
  const auto* attribute = findAttr(name);
  if (!attribute) {
    return std::nullopt;
  }
  return Ints(attribute->ints().begin(), attribute->ints().end());
}

std::optional<llvm::SmallVector<float>> NodeImporter::attrFloats(StringRef name) const {
  const auto* attribute = findAttr(name);
  if (!attribute) {
    return std::nullopt;
  }
  return llvm::SmallVector<float>(attribute->floats().begin(), attribute->floats().end());
}

FailureOr<DenseElementsAttr> NodeImporter::attrTensor(StringRef name) const {
  const auto* attribute = findAttr(name);
  if (!attribute) {
    return DenseElementsAttr();
  }
  auto data = readTensor(attribute->t(), folder_);
  if (!data) {
    error() << "attribute \"" << name << "\": " << llvm::toString(data.takeError());
    return failure();
  }
  return toAttribute(builder_.getContext(), *data);
}

FailureOr<Ints> NodeImporter::constantInts(unsigned index) const {
  Value value = operand(index);
  if (!value) {
    return failure();
  }
  if (auto ints = constantIntsOf(value)) {
    return *ints;
  }
  error() << "operand " << index << " (\"" << node_.input(index)
          << "\") must be integers known at compile time, but they depend on the inputs' or "
             "parameters' values";
  return failure();
}

FailureOr<int64_t> NodeImporter::constantInt(unsigned index) const {
  FailureOr<Ints> ints = constantInts(index);
  if (failed(ints)) {
    return failure();
  }
  if (ints->size() != 1) {
    error() << "operand " << index << " must have one element, has " << ints->size();
    return failure();
  }
  return ints->front();
}

FailureOr<int64_t> NodeImporter::normalizeAxis(int64_t axis, int64_t rank) const {
  if (axis < -rank || axis >= rank) {
    error() << "axis " << axis << " does not exist in a tensor of rank " << rank;
    return failure();
  }
  return axis < 0 ? axis + rank : axis;
}

FailureOr<Ints> NodeImporter::normalizeAxes(ArrayRef<int64_t> axes, int64_t rank) const {
  Ints normalized;
  for (int64_t axis : axes) {
    FailureOr<int64_t> one = normalizeAxis(axis, rank);
    if (failed(one)) {
      return failure();
    }
    if (llvm::is_contained(normalized, *one)) {
      error() << "axis " << axis << " is given twice";
      return failure();
    }
    normalized.push_back(*one);
  }
  return normalized;
}

// --- Building

Value NodeImporter::finish(mlir::Operation* op) {
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

RankedTensorType NodeImporter::tensorType(ArrayRef<int64_t> shape, mlir::Type element) const {
  if (llvm::any_of(shape, [](int64_t size) { return size < 0 || size > ir::kMaxElements; }) ||
      ir::elementCount(shape) > ir::kMaxElements) {
    error() << "makes a tensor of more than " << ir::kMaxElements << " elements";
    return {};
  }
  return RankedTensorType::get(shape, element);
}

Value NodeImporter::constant(DenseElementsAttr value) {
  return createTyped<ir::ConstantOp>(value.getType(), mlir::ElementsAttr(value));
}

Value NodeImporter::constantOf(ArrayRef<int64_t> values) {
  return constantOf(values, {static_cast<int64_t>(values.size())});
}

Value NodeImporter::constantOf(ArrayRef<int64_t> values, ArrayRef<int64_t> shape) {
  auto type = RankedTensorType::get(shape, builder_.getI64Type());
  return constant(DenseElementsAttr::get(type, values));
}

Value NodeImporter::boolConstant(ArrayRef<bool> values, ArrayRef<int64_t> shape) {
  auto type = RankedTensorType::get(shape, builder_.getI1Type());
  return constant(DenseElementsAttr::get(type, values));
}

Value NodeImporter::scalarLike(Value like, double value) {
  return like ? splat(RankedTensorType::get({}, elementOf(like)), value) : Value();
}

Value NodeImporter::splat(RankedTensorType type, double value) {
  mlir::Type element = type.getElementType();
  mlir::Attribute attribute;
  if (llvm::isa<mlir::FloatType>(element)) {
    attribute = mlir::FloatAttr::get(element, value);
  } else if (element.isInteger(1)) {
    attribute = mlir::BoolAttr::get(builder_.getContext(), value != 0);
  } else {
    attribute = mlir::IntegerAttr::get(element, static_cast<int64_t>(value));
  }
  return constant(DenseElementsAttr::get(type, attribute));
}

Value NodeImporter::reshape(Value input, ArrayRef<int64_t> shape) {
  if (!input || shapeOf(input) == shape) {
    return input;
  }
  return createTyped<ir::ReshapeOp>(tensorType(shape, elementOf(input)), input);
}

Value NodeImporter::broadcast(Value input, ArrayRef<int64_t> shape) {
  if (!input || shapeOf(input) == shape) {
    return input;
  }
  return createTyped<ir::BroadcastOp>(tensorType(shape, elementOf(input)), input);
}

Value NodeImporter::transpose(Value input, ArrayRef<int64_t> permutation) {
  return create<ir::TransposeOp>(input, permutation);
}

Value NodeImporter::swapLastTwo(Value input) {
  if (!input) {
    return {};
  }
  auto permutation = llvm::to_vector(llvm::seq<int64_t>(0, rankOf(input)));
  std::swap(permutation[permutation.size() - 1], permutation[permutation.size() - 2]);
  return transpose(input, permutation);
}

Value NodeImporter::cast(Value input, mlir::Type elementType) {
  if (!input || elementOf(input) == elementType) {
    return input;
  }
  return createTyped<ir::CastOp>(RankedTensorType::get(shapeOf(input), elementType), input);
}

Value NodeImporter::slice(Value input, ArrayRef<int64_t> starts, ArrayRef<int64_t> limits) {
  Ints strides(starts.size(), 1);
  return create<ir::SliceOp>(input, starts, limits, ArrayRef<int64_t>(strides));
}

Value NodeImporter::sliceDim(Value input, int64_t dim, int64_t start, int64_t limit) {
  if (!input) {
    return {};
  }
  Ints starts(rankOf(input), 0), limits(shapeOf(input));
  starts[dim] = start;
  limits[dim] = limit;
  return slice(input, starts, limits);
}

Value NodeImporter::gather(Value input, Value indices, int64_t dim) {
  return create<ir::GatherOp>(input, indices, dim);
}

Value NodeImporter::concat(ArrayRef<Value> inputs, int64_t dim) {
  if (inputs.size() == 1) {
    return inputs.front();
  }
  return create<ir::ConcatOp>(mlir::ValueRange(inputs), dim);
}

Value NodeImporter::clamp(Value input, double low, double high) {
  return create<ir::MinOp>(create<ir::MaxOp>(input, scalarLike(input, low)),
                           scalarLike(input, high));
}

// --- Results

LogicalResult NodeImporter::replace(Value result) {
  for (unsigned i = 1; i < numResults(); ++i) {
    if (hasResult(i)) {
      return error() << "result " << i << " (\"" << node_.output(i)
                     << "\") is used, and Oriel imports only the first result of this op";
    }
  }
  return replace(ArrayRef<Value>(result));
}

LogicalResult NodeImporter::replace(ArrayRef<Value> results) {
  for (unsigned i = 0; i < numResults(); ++i) {
    if (!hasResult(i)) {
      continue;
    }
    if (i >= results.size()) {
      return error() << "has " << numResults() << " results, expected " << results.size();
    }
    if (!results[i]) {
      return failure();
    }
  }
  results_.assign(results.begin(), results.end());
  return success();
}

// --- Constants

std::optional<Ints> constantIntsOf(Value value) {
  DenseElementsAttr elements;
  if (!mlir::matchPattern(value, mlir::m_Constant(&elements)) ||
      !elements.getElementType().isIntOrIndex()) {
    return std::nullopt;
  }
  bool isSigned =
      !elements.getElementType().isInteger(1) && !elements.getElementType().isUnsignedInteger();
  Ints ints;
  ints.reserve(elements.getNumElements());
  for (const llvm::APInt& element : elements.getValues<llvm::APInt>()) {
    ints.push_back(isSigned ? element.getSExtValue()
                            : static_cast<int64_t>(element.getZExtValue()));
  }
  return ints;
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
  return static_cast<double>(constantIntsOf(value)->front());
}

}  // namespace oriel
