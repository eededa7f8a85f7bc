#include "passes/train/weight_gradient.h"

#include "ir/oriel/inference.h"
#include "passes/train/autodiff.h"

namespace oriel {

using mlir::OpBuilder;
using mlir::Operation;
using mlir::RankedTensorType;
using mlir::Type;
using mlir::Value;

namespace {

// Whether the op's result is wider if its operands are: a sum of cotangents, or a move.
bool passesWidth(Operation* op) {
  if (op->getNumResults() != 1) return false;
  auto precise = llvm::dyn_cast<ir::PrecisionOpInterface>(op);
  bool moves = precise && precise.getPrecision() == ir::Precision::kMove;
  return moves || llvm::isa<ir::AddOp>(op);
}

// `uses` are those of the gradient that its change is for.
Value changeOrCast(OpBuilder& builder, Value gradient, Type elementType, unsigned uses) {
  if (ir::elementOf(gradient) == elementType) return gradient;
  RankedTensorType type = ir::tensorType(gradient).clone(elementType);
  Operation* producer = gradient.getDefiningOp();
  // A value of the forward is not to be changed.
  bool isOwn = producer && producer->getBlock() == builder.getInsertionBlock();
  if (isOwn && gradient.hasNUses(uses)) {
    auto precise = llvm::dyn_cast<ir::PrecisionOpInterface>(producer);
    unsigned number = llvm::cast<mlir::OpResult>(gradient).getResultNumber();
    if (precise && precise.givesWide(number) && elementType.isF32()) {
      gradient.setType(type);
      return gradient;
    }
    auto cast = llvm::dyn_cast<ir::CastOp>(producer);
    if (cast && cast.getInput().getType() == type) return cast.getInput();
    if (passesWidth(producer)) {
      for (mlir::OpOperand& operand : producer->getOpOperands()) {
        if (ir::elementOf(operand.get()) != ir::elementOf(gradient)) continue;
        operand.set(changeOrCast(builder, operand.get(), elementType, 1));
      }
      gradient.setType(type);
      return gradient;
    }
  }
  OpBuilder::InsertionGuard guard(builder);
  if (isOwn) builder.setInsertionPointAfterValue(gradient);
  auto cast = ir::CastOp::create(builder, gradient.getLoc(), type, gradient);
  if (producer) setOrigin(cast, originOf(producer));
  cast->setAttr(kWeightGradient, builder.getUnitAttr());
  return cast;
}

}  // namespace

RankedTensorType gradientType(ir::ParameterOp parameter, const Recipe& recipe) {
  RankedTensorType type = parameter.getTensorType();
  if (recipe.precision.narrowGradients) return type;
  return type.clone(ir::wideType(type.getElementType()));
}

Value gradientAs(OpBuilder& builder, Value gradient, Type elementType) {
  return changeOrCast(builder, gradient, elementType, 0);
}

}  // namespace oriel
