#include "passes/strategize/parameter_part.h"

#include "passes/strategize/padding.h"

namespace oriel {

namespace {

constexpr llvm::StringLiteral kWhole("oriel.whole"), kStart("oriel.start");

}  // namespace

std::optional<ParameterPart> partOf(ir::ParameterOp parameter) {
  auto whole = parameter->getAttrOfType<mlir::DenseI64ArrayAttr>(kWhole);
  auto start = parameter->getAttrOfType<mlir::DenseI64ArrayAttr>(kStart);
  if (!whole || !start) return std::nullopt;
  return ParameterPart{whole.asArrayRef(), start.asArrayRef()};
}

ir::ParameterOp clonePart(ir::ParameterOp parameter, int64_t dim, int64_t begin, int64_t end) {
  mlir::RankedTensorType type = parameter.getTensorType();
  llvm::SmallVector<int64_t> shape(type.getShape()), whole(shape), start(type.getRank(), 0);
  if (std::optional<ParameterPart> own = partOf(parameter)) {
    whole.assign(own->whole.begin(), own->whole.end());
    start.assign(own->start.begin(), own->start.end());
  }
  shape[dim] = end - begin;
  start[dim] += begin;
  ir::ParameterOp part = parameter.clone();
  part.setType(type.clone(shape));
  part->setAttr(kWhole, mlir::DenseI64ArrayAttr::get(parameter.getContext(), whole));
  part->setAttr(kStart, mlir::DenseI64ArrayAttr::get(parameter.getContext(), start));
  return part;
}

std::string uniqueName(ir::ParameterOp parameter) {
  std::string name = parameter.getOnnxName().str();
  std::optional<ParameterPart> part = partOf(parameter);
  if (!part) return name;
  llvm::ArrayRef<int64_t> shape =
      unpaddedShape(parameter).value_or(parameter.getTensorType().getShape());
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    name += dim == 0 ? "[" : ", ";
    if (shape[dim] != part->whole[dim]) name += std::to_string(part->start[dim]);
    name += ":";
    if (shape[dim] != part->whole[dim]) name += std::to_string(part->start[dim] + shape[dim]);
  }
  return name + "]";
}

}  // namespace oriel
