#include "passes/strategize/padding.h"

namespace oriel {

namespace {

constexpr llvm::StringLiteral kUnpadded("oriel.unpadded");

}  // namespace

std::optional<llvm::ArrayRef<int64_t>> unpaddedShape(ir::ParameterOp parameter) {
  auto attribute = parameter->getAttrOfType<mlir::DenseI64ArrayAttr>(kUnpadded);
  if (!attribute) return std::nullopt;
  return attribute.asArrayRef();
}

void padParameter(ir::ParameterOp parameter, int64_t dim, int64_t size) {
  mlir::RankedTensorType type = parameter.getTensorType();
  llvm::SmallVector<int64_t> shape(type.getShape());
  if (!unpaddedShape(parameter)) {
    parameter->setAttr(kUnpadded, mlir::DenseI64ArrayAttr::get(parameter.getContext(), shape));
  }
  shape[dim] = size;
  parameter.setType(type.clone(shape));
}

}  // namespace oriel
