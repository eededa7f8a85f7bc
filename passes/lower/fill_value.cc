#include "passes/lower/fill_value.h"

#include "mlir/IR/BuiltinTypes.h"

namespace oriel {

std::optional<double> fillValue(mlir::ElementsAttr constant) {
  auto dense = llvm::dyn_cast<mlir::DenseElementsAttr>(constant);
  if (!dense || !dense.isSplat()) return std::nullopt;
  if (llvm::isa<mlir::FloatType>(dense.getElementType())) {
    return dense.getSplatValue<llvm::APFloat>().convertToDouble();
  }
  auto type = llvm::dyn_cast<mlir::IntegerType>(dense.getElementType());
  if (!type) return std::nullopt;
  // True is 1, not -1.
  const bool isSigned = !type.isUnsigned() && type.getWidth() > 1;
  const llvm::APInt number = dense.getSplatValue<llvm::APInt>();
  const double value = number.roundToDouble(isSigned);
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (value <= -kExact || value >= kExact) return std::nullopt;
  return value;
}

}  // namespace oriel
