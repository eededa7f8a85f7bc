#include "frontend/float_types.h"

#include "llvm/ADT/APFloat.h"

namespace oriel {

using llvm::APFloat;

mlir::Type FloatTypes::of(mlir::Type element) const {
  return widens(element) ? mlir::Float32Type::get(element.getContext()) : element;
}

mlir::RankedTensorType FloatTypes::of(mlir::RankedTensorType type) const {
  return type.clone(of(type.getElementType()));
}

mlir::DenseElementsAttr FloatTypes::of(mlir::DenseElementsAttr constant) const {
  if (!constant || !widens(constant.getElementType())) {
    return constant;
  }
  const llvm::fltSemantics& wide = APFloat::IEEEsingle();
  return llvm::cast<mlir::DenseFPElementsAttr>(constant).mapValues(
      of(constant.getElementType()), [&](const APFloat& value) {
        APFloat converted =
            value.isLargest() ? APFloat::getLargest(wide, value.isNegative()) : value;
        bool lossy;
        converted.convert(wide, APFloat::rmNearestTiesToEven, &lossy);
        return converted.bitcastToAPInt();
      });
}

}  // namespace oriel
