#include "frontend/node_importer.h"

#include "frontend/graph.h"
#include "frontend/node_location.h"
#include "frontend/tensor_data.h"
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
                           mlir::OpBuilder& builder, StringRef folder, FloatTypes floats)
    : ValueBuilder(builder, nodeLocation(builder.getContext(), node)),
      node_(node),
      version_(version),
      operands_(operands),
      folder_(folder),
      floats_(floats) {}

// --- The node

StringRef NodeImporter::opType() const { return node_.op_type(); }

mlir::InFlightDiagnostic NodeImporter::error() const {
  auto diagnostic = mlir::emitError(location());
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
  return Graph::attribute(node_, name);
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

std::optional<llvm::SmallVector<std::string>> NodeImporter::attrStrings(StringRef name) const {
  const auto* attribute = findAttr(name);
  if (!attribute) {
    return std::nullopt;
  }
  return llvm::SmallVector<std::string>(attribute->strings().begin(), attribute->strings().end());
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
  return floats_.of(toAttribute(builder().getContext(), *data));
}

mlir::Type NodeImporter::attrType(StringRef name, StringRef does) const {
  auto code = static_cast<int32_t>(attrInt(name, 0));
  mlir::Type element = elementTypeOf(builder().getContext(), code);
  if (!element) {
    error() << does << " " << dataTypeName(code) << ", which Oriel does not know";
    return {};
  }
  return floats_.of(element);
}

FailureOr<Ints> NodeImporter::constantInts(unsigned index) const {
  Value value = operand(index);
  if (!value) {
    return failure();
  }
  if (auto ints = computedIntsOf(value)) {
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

}  // namespace oriel
