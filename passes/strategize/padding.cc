#include "passes/strategize/padding.h"

namespace oriel {

namespace {

constexpr llvm::StringLiteral kUnpadded("oriel.unpadded"), kGroups("oriel.padded_groups");

std::optional<llvm::ArrayRef<int64_t>> arrayOf(ir::ParameterOp parameter, llvm::StringRef name) {
  auto attribute = parameter->getAttrOfType<mlir::DenseI64ArrayAttr>(name);
  if (!attribute) return std::nullopt;
  return attribute.asArrayRef();
}

}  // namespace

std::optional<llvm::ArrayRef<int64_t>> unpaddedShape(ir::ParameterOp parameter) {
  return arrayOf(parameter, kUnpadded);
}

std::optional<llvm::ArrayRef<int64_t>> paddedGroups(ir::ParameterOp parameter) {
  return arrayOf(parameter, kGroups);
}

void padParameter(ir::ParameterOp parameter, int64_t dim, int64_t size, int64_t groups) {
  mlir::RankedTensorType type = parameter.getTensorType();
  llvm::SmallVector<int64_t> shape(type.getShape());
  mlir::MLIRContext* context = parameter.getContext();
  if (!unpaddedShape(parameter)) {
    parameter->setAttr(kUnpadded, mlir::DenseI64ArrayAttr::get(context, shape));
  }
  if (groups > 1) {
    llvm::SmallVector<int64_t> all(shape.size(), 1);
    if (auto known = paddedGroups(parameter)) all.assign(known->begin(), known->end());
    all[dim] = groups;
    parameter->setAttr(kGroups, mlir::DenseI64ArrayAttr::get(context, all));
  }
  shape[dim] = size;
  parameter.setType(type.clone(shape));
}

}  // namespace oriel
