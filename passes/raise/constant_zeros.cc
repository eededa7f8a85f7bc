#include "passes/raise/constant_zeros.h"

#include "llvm/ADT/TypeSwitch.h"
#include "mlir/IR/Matchers.h"

namespace oriel {

using mlir::Value;
using Zeros = std::vector<bool>;

namespace {

Zeros eitherOf(Zeros left, const Zeros& right) {
  if (left.empty()) return right;
  for (size_t i = 0; i < right.size(); ++i) left[i] = left[i] || right[i];
  return left;
}

}  // namespace

Zeros ConstantZeros::of(Value value) {
  auto found = found_.find(value);
  if (found != found_.end()) return found->second;
  mlir::Operation* op = value.getDefiningOp();
  Zeros zeros = op && hasMatrices(value) ? find(op) : Zeros();
  return found_[value] = std::move(zeros);
}

Zeros ConstantZeros::find(mlir::Operation* op) {
  return llvm::TypeSwitch<mlir::Operation*, Zeros>(op)
      .Case<ir::NegOp, ir::CastOp, ir::DivOp, ir::ReshapeOp>(
          [&](auto) { return of(op->getOperand(0)); })
      .Case<ir::MulOp>([&](ir::MulOp mul) { return eitherOf(of(mul.getLhs()), of(mul.getRhs())); })
      .Case<ir::SelectOp>([&](ir::SelectOp select) { return ofSelect(select); })
      .Case<ir::ConstantOp>([&](ir::ConstantOp constant) { return ofConstant(constant); })
      .Default([](mlir::Operation*) { return Zeros(); });
}

bool ConstantZeros::hasMatrices(Value value) const {
  llvm::ArrayRef<int64_t> sizes = shapeOf(value);
  return sizes.size() >= 2 && sizes.take_back(2) == llvm::ArrayRef<int64_t>({rows_, rows_});
}

Zeros ConstantZeros::ofConstant(ir::ConstantOp op) const {
  auto elements = llvm::dyn_cast<mlir::DenseElementsAttr>(op.getValue());
  if (!elements || elements.getNumElements() != rows_ * rows_ ||
      !llvm::isa<mlir::FloatType>(elements.getElementType())) {
    return {};
  }
  Zeros zeros;
  for (const llvm::APFloat& element : elements.getValues<llvm::APFloat>()) {
    zeros.push_back(element.isZero());
  }
  return zeros;
}

// Of a condition that is the same for all matrices.
Zeros ConstantZeros::ofSelect(ir::SelectOp op) {
  mlir::DenseElementsAttr condition;
  Value mask = op.getCondition();
  if (!hasMatrices(mask) || !mlir::matchPattern(mask, mlir::m_Constant(&condition)) ||
      tensorType(mask).getNumElements() != rows_ * rows_) {
    return {};
  }
  const Zeros onTrue = ofChosen(op.getOnTrue()), onFalse = ofChosen(op.getOnFalse());
  Zeros zeros;
  for (bool chosen : condition.getValues<bool>()) {
    const Zeros& from = chosen ? onTrue : onFalse;
    zeros.push_back(!from.empty() && from[zeros.size()]);
  }
  return zeros;
}

Zeros ConstantZeros::ofChosen(Value value) {
  if (splatValue(value) == 0.0) return Zeros(rows_ * rows_, true);
  return of(value);
}

}  // namespace oriel
