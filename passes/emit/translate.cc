#include "passes/emit/translate.h"

#include "llvm/ADT/StringSwitch.h"
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
  if (type.isInteger(16)) return plan::I16;
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
    auto* ints = attribute->mutable_ints();  // which an empty list has, too
    for (int64_t element : list.asArrayRef()) ints->add_values(element);
  } else {
    return op->emitOpError("has an attribute that a plan can't hold: ") << value;
  }
  return success();
}

namespace {

// Adds to a list of numbers; false for anything else.
bool addIntegers(mlir::Attribute attribute, google::protobuf::RepeatedField<int32_t>* values) {
  auto list = llvm::dyn_cast<mlir::ArrayAttr>(attribute);
  if (!list || !llvm::all_of(list, llvm::IsaPred<mlir::IntegerAttr>)) return false;
  for (auto value : list.getAsRange<mlir::IntegerAttr>()) values->Add(value.getInt());
  return true;
}

bool addDims(mlir::Attribute attribute, plan::SplitRule::TensorDims* tensor) {
  if (auto first = llvm::dyn_cast<mlir::IntegerAttr>(attribute)) {
    tensor->set_first(true);
    tensor->set_factor(first.getInt());
    return true;
  }
  auto dims = llvm::dyn_cast<mlir::ArrayAttr>(attribute);
  return dims && llvm::all_of(dims, [&](mlir::Attribute factors) {
           return addIntegers(factors, tensor->add_dims()->mutable_factors());
         });
}

bool addFactor(mlir::Attribute attribute, plan::SplitRule::Factor* factor) {
  auto pair = llvm::dyn_cast<mlir::ArrayAttr>(attribute);
  auto size = pair && pair.size() == 2 ? llvm::dyn_cast<mlir::IntegerAttr>(pair[0]) : nullptr;
  auto kind = size ? llvm::dyn_cast<mlir::StringAttr>(pair[1]) : nullptr;
  if (!kind) return false;
  factor->set_size(size.getInt());
  factor->set_kind(llvm::StringSwitch<plan::SplitRule::Kind>(kind.getValue())
                       .Case("parallel", plan::SplitRule::PARALLEL)
                       .Case("sum", plan::SplitRule::SUM)
                       .Case("max", plan::SplitRule::MAX)
                       .Default(plan::SplitRule::WHOLE));
  return true;
}

}  // namespace

LogicalResult toPlanRule(mlir::DictionaryAttr attribute, mlir::Operation* op,
                         plan::SplitRule* rule) {
  auto all = [&](llvm::StringRef name, auto add) {
    auto list = attribute.getAs<mlir::ArrayAttr>(name);
    return list && llvm::all_of(list, add);
  };
  bool valid =
      all("factors", [&](mlir::Attribute a) { return addFactor(a, rule->add_factors()); }) &&
      all("operands", [&](mlir::Attribute a) { return addDims(a, rule->add_operands()); }) &&
      all("results", [&](mlir::Attribute a) { return addDims(a, rule->add_results()); }) &&
      all("linear",
          [&](mlir::Attribute a) {
            return addIntegers(a, rule->add_linear()->mutable_operands());
          }) &&
      (!attribute.contains("added") || addIntegers(attribute.get("added"), rule->mutable_added()));
  if (valid) return success();
  return op->emitOpError("has a rule that a plan can't hold: ") << attribute;
}

}  // namespace oriel
