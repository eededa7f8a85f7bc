#include "frontend/ops/constant_floats.h"

#include "mlir/IR/Matchers.h"

namespace oriel {

mlir::FailureOr<std::vector<double>> constantFloats(NodeImporter& n, unsigned index) {
  mlir::DenseElementsAttr elements;
  mlir::Value operand = n.operand(index);
  if (!operand) {
    return mlir::failure();
  }
  if (!mlir::matchPattern(operand, mlir::m_Constant(&elements)) ||
      !llvm::isa<mlir::FloatType>(elements.getElementType()) ||
      elements.getNumElements() > kMaxEnumerated) {
    return n.error() << "operand " << index << " must be known at compile time";
  }
  std::vector<double> values;
  for (mlir::APFloat value : elements.getValues<mlir::APFloat>()) {
    bool losesInfo;
    value.convert(mlir::APFloat::IEEEdouble(), mlir::APFloat::rmNearestTiesToEven, &losesInfo);
    values.push_back(value.convertToDouble());
  }
  return values;
}

}  // namespace oriel
