#include "passes/emit/translate.h"

#include "mlir/IR/BuiltinTypes.h"

namespace oriel {

using mlir::LogicalResult;
using mlir::success;

namespace {

plan::DType dtypeOf(mlir::Type type) {
  if (type.isF32()) return plan::F32;
  if (type.isF64()) return plan::F64;
  if (type.isF16()) return plan::F16;
  if (type.isBF16()) return plan::BF16;
  if (type.isInteger(1)) return plan::BOOL;
  if (type.isUnsignedInteger(8)) return plan::U8;
  if (type.isInteger(8)) return plan::I8;
  if (type.isInteger(32)) return plan::I32;
  if (type.isInteger(64)) return plan::I64;
  return plan::DTYPE_UNSPECIFIED;
}

}  // namespace

LogicalResult toPlanTensor(mlir::Type type, mlir::Operation* op, plan::Tensor* tensor) {
  auto ranked = llvm::dyn_cast<mlir::RankedTensorType>(type);
  if (!ranked || !ranked.hasStaticShape() || !dtypeOf(ranked.getElementType())) {
    return op->emitOpError("has the type ") << type << ", which a plan can't hold";
  }
  tensor->set_dtype(dtypeOf(ranked.getElementType()));
  for (int64_t size : ranked.getShape()) tensor->add_shape(size);
  return success();
}

LogicalResult toPlanBytes(mlir::ElementsAttr value, mlir::Operation* op, std::string* bytes) {
  auto dense = llvm::dyn_cast<mlir::DenseElementsAttr>(value);
  if (!dense) return op->emitOpError("has a constant that is not dense");
  if (dense.getElementType().isInteger(1)) {
    for (bool element : dense.getValues<bool>()) bytes->push_back(element ? 1 : 0);
    return success();
  }
  llvm::ArrayRef<char> raw = dense.getRawData();
  int64_t repeats = dense.isSplat() ? dense.getNumElements() : 1;
  bytes->reserve(raw.size() * repeats);
  for (int64_t i = 0; i < repeats; ++i) bytes->append(raw.data(), raw.size());
  return success();
}

LogicalResult toPlanAttribute(mlir::Attribute value, mlir::Operation* op,
                              plan::Attribute* attribute) {
  if (auto integer = llvm::dyn_cast<mlir::IntegerAttr>(value)) {
    bool isBool = integer.getType().isInteger(1);
    attribute->set_i(isBool ? integer.getValue().getZExtValue() : integer.getInt());
  } else if (auto number = llvm::dyn_cast<mlir::FloatAttr>(value)) {
    attribute->set_f(number.getValueAsDouble());
  } else if (auto string = llvm::dyn_cast<mlir::StringAttr>(value)) {
    attribute->set_s(string.str());
  } else if (auto list = llvm::dyn_cast<mlir::DenseI64ArrayAttr>(value)) {
    for (int64_t element : list.asArrayRef()) attribute->mutable_ints()->add_values(element);
  } else {
    return op->emitOpError("has an attribute that a plan can't hold: ") << value;
  }
  return success();
}

}  // namespace oriel
