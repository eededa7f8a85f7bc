// Tensors that follow from attributes and shapes alone.
#include <cmath>

#include "frontend/node_importer.h"
#include "frontend/op_registry.h"
#include "frontend/ops/ops.h"
#include "frontend/tensor_data.h"

namespace oriel {
namespace {

using mlir::DenseElementsAttr;
using mlir::failure;
using mlir::LogicalResult;
using mlir::RankedTensorType;
using mlir::Value;

LogicalResult importConstant(NodeImporter& n) {
  mlir::Builder& b = n.builder();
  if (n.hasAttr("value_int")) {
    return n.replace(n.constantOf({n.attrInt("value_int", 0)}, llvm::ArrayRef<int64_t>()));
  }
  if (auto ints = n.attrInts("value_ints")) {
    return n.replace(n.constantOf(*ints));
  }
  if (n.hasAttr("value_float")) {
    return n.replace(
        n.splat(RankedTensorType::get({}, b.getF32Type()), n.attrFloat("value_float", 0)));
  }
  if (auto floats = n.attrFloats("value_floats")) {
    auto type = RankedTensorType::get({static_cast<int64_t>(floats->size())}, b.getF32Type());
    return n.replace(n.constant(DenseElementsAttr::get(type, llvm::ArrayRef<float>(*floats))));
  }
  auto tensor = n.attrTensor("value");
  if (failed(tensor)) {
    return failure();
  }
  if (!*tensor) {
    return n.error() << "has none of the attributes value, value_int, value_ints, value_float "
                        "and value_floats";
  }
  return n.replace(n.constant(*tensor));
}

LogicalResult importConstantOfShape(NodeImporter& n) {
  auto shape = n.constantInts(0);
  auto value = n.attrTensor("value");
  if (failed(shape) || failed(value)) {
    return failure();
  }
  mlir::Type element = *value ? value->getElementType() : n.builder().getF32Type();
  Value scalar =
      *value ? n.reshape(n.constant(*value), {}) : n.splat(RankedTensorType::get({}, element), 0);
  return n.replace(n.broadcast(scalar, *shape));
}

// The dimensions [start, end), which count from the end where negative, and are clamped.
LogicalResult importShape(NodeImporter& n) {
  Value input = n.operand(0);
  if (!input) {
    return failure();
  }
  int64_t rank = rankOf(input);
  auto clamp = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  int64_t start = clamp(n.attrInt("start", 0));
  int64_t end = std::max(start, clamp(n.attrInt("end", rank)));
  return n.replace(n.constantOf(shapeOf(input).slice(start, end - start)));
}

LogicalResult importSize(NodeImporter& n) {
  Value input = n.operand(0);
  return n.replace(
      input ? n.constantOf({tensorType(input).getNumElements()}, llvm::ArrayRef<int64_t>())
            : Value());
}

// Ones on the k-th diagonal of a matrix of the input's shape.
LogicalResult importEyeLike(NodeImporter& n) {
  Value input = n.operand(0);
  if (!input || rankOf(input) != 2) {
    return input ? n.error() << "expects a matrix, got " << input.getType() : failure();
  }
  mlir::Type element = elementOf(input);
  if (n.hasAttr("dtype")) {
    element = n.attrType("dtype", "makes");
    if (!element) {
      return failure();
    }
  }
  Value rows = n.createTyped<ir::IotaOp>(
      n.tensorType({shapeOf(input)[0], 1}, n.builder().getI64Type()), int64_t{0});
  Value columns = n.createTyped<ir::IotaOp>(
      n.tensorType({1, shapeOf(input)[1]}, n.builder().getI64Type()), int64_t{1});
  Value diagonal = n.create<ir::AddOp>(rows, n.constantOf({n.attrInt("k", 0)}, {1, 1}));
  return n.replace(n.cast(n.create<ir::EqualOp>(columns, diagonal), element));
}

// start, start + delta, .. below limit
LogicalResult importRange(NodeImporter& n) {
  Value start = n.operand(0), limit = n.operand(1), delta = n.operand(2);
  if (!start || !limit || !delta) {
    return failure();
  }
  // As an exporter makes it of torch.arange(1, 5.0).
  if (elementOf(start) != elementOf(limit) || elementOf(start) != elementOf(delta)) {
    return n.error() << "start, limit and delta are " << elementOf(start) << ", "
                     << elementOf(limit) << " and " << elementOf(delta)
                     << ": ONNX has one type for all of them; write all of them as integers, or "
                     << "as floats, in the model";
  }
  auto from = constantScalarOf(start), to = constantScalarOf(limit), by = constantScalarOf(delta);
  if (!from || !to || !by) {
    return n.error() << "start, limit and delta must be known at compile time";
  }
  if (*by == 0) {
    return n.error() << "delta is 0";
  }
  double count = std::ceil((*to - *from) / *by);
  constexpr int64_t kLimit = 1 << 24;
  if (!(count <= kLimit)) {  // also where it is no number
    return n.error() << "has " << count << " elements, more than " << kLimit;
  }
  count = std::max(0.0, count);
  auto type = RankedTensorType::get({static_cast<int64_t>(count)}, n.builder().getI64Type());
  if (count == 0) {
    return n.replace(n.cast(n.constantOf({}), elementOf(start)));
  }
  // In the element type itself, so that rounding is that of the model's arithmetic.
  Value index = n.cast(n.createTyped<ir::IotaOp>(type, int64_t{0}), elementOf(start));
  return n.replace(n.create<ir::AddOp>(start, n.create<ir::MulOp>(index, delta)));
}

}  // namespace

void registerConstantOps(OpRegistry& registry) {
  registry.add("Constant", 13, importConstant);
  registry.add("ConstantOfShape", 9, importConstantOfShape);
  registry.add("Shape", 13, importShape);
  registry.add("Size", 13, importSize);
  registry.add("EyeLike", 9, importEyeLike);
  registry.add("Range", 11, importRange);
  registry.addConstantOperands("Range", {0, 1, 2});
}

}  // namespace oriel
