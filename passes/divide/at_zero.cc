#include "passes/divide/at_zero.h"

#include "ir/interfaces/interfaces.h"
#include "ir/interfaces/tensor_type.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/IR/Matchers.h"

namespace oriel {

namespace {

using mlir::Operation;
using mlir::Value;

// A square, say.
bool isPowerOfOneOrMore(Operation* op) {
  auto power = llvm::dyn_cast<ir::PowOp>(op);
  llvm::APFloat exponent(0.0);
  return power && mlir::matchPattern(power.getRhs(), mlir::m_ConstantFloat(&exponent)) &&
         exponent.convertToDouble() >= 1;
}

// Of zero, with finite derivatives there, though not linear.
bool isZeroAtZero(Operation* op) {
  return isPowerOfOneOrMore(op) ||
         llvm::isa<ir::AbsOp, ir::ActivationOp, ir::AsinhOp, ir::AtanOp, ir::CastOp, ir::CeilOp,
                   ir::ErfOp, ir::FloorOp, ir::GatedActivationOp, ir::MaxOp, ir::MinOp,
                   ir::ReduceMaxOp, ir::ReduceMinOp, ir::ReluOp, ir::RmsNormOp, ir::RoundOp,
                   ir::SignOp, ir::SinOp, ir::SinhOp, ir::TanOp, ir::TanhOp>(op);
}

}  // namespace

bool isSmoothAtZero(Operation* op) {
  if (auto norm = llvm::dyn_cast<ir::RmsNormOp>(op)) return norm.getEpsilon() > 0;
  if (auto norm = llvm::dyn_cast<ir::LayerNormOp>(op)) return norm.getEpsilon() > 0;
  auto isFloat = [](Value value) {
    return llvm::isa<mlir::FloatType>(ir::tensorType(value).getElementType());
  };
  return isZeroAtZero(op) || llvm::none_of(op->getResults(), isFloat) ||
         llvm::isa<ir::AttentionOp, ir::CosOp, ir::CoshOp, ir::ExpOp, ir::SigmoidOp, ir::SoftmaxOp>(
             op);
}

bool givesZero(Operation* op, llvm::function_ref<bool(Value)> isZero) {
  if (auto attention = llvm::dyn_cast<ir::AttentionOp>(op)) return isZero(attention.getValue());
  if (auto gated = llvm::dyn_cast<ir::GatedActivationOp>(op)) {
    return isZero(gated.getGate()) || isZero(gated.getUp());
  }
  if (llvm::isa<ir::RmsNormOp>(op) || isPowerOfOneOrMore(op)) return isZero(op->getOperand(0));
  return isZeroAtZero(op) && llvm::all_of(op->getOperands(), isZero);
}

std::optional<unsigned> operandAboveZero(Operation* op) {
  if (llvm::isa<ir::DivOp>(op)) return 1;
  const bool isOfOne =
      llvm::isa<ir::LogOp, ir::PowOp, ir::ReciprocalOp, ir::RsqrtOp, ir::SqrtOp>(op);
  return isOfOne ? std::optional(0U) : std::nullopt;
}

std::optional<double> valueOf(Operation* op,
                              llvm::function_ref<std::optional<double>(Value)> numberOf) {
  if (!op->hasTrait<ir::Pointwise>() || op->getNumResults() != 1) return std::nullopt;
  llvm::SmallVector<mlir::Attribute> numbers;
  for (Value operand : op->getOperands()) {
    auto element = llvm::dyn_cast<mlir::FloatType>(ir::tensorType(operand).getElementType());
    std::optional<double> number = element ? numberOf(operand) : std::nullopt;
    if (!number) return std::nullopt;
    numbers.push_back(
        mlir::DenseElementsAttr::get(mlir::RankedTensorType::get({}, element),
                                     mlir::Attribute(mlir::FloatAttr::get(element, *number))));
  }
  // The same op, of one element.
  mlir::OpBuilder builder(op->getContext());
  llvm::SmallVector<mlir::OwningOpRef<Operation*>> owned;
  llvm::SmallVector<Value> operands;
  for (mlir::Attribute number : numbers) {
    owned.push_back(
        ir::ConstantOp::create(builder, op->getLoc(), llvm::cast<mlir::DenseElementsAttr>(number))
            .getOperation());
    operands.push_back((*owned.back())->getResult(0));
  }
  auto element = ir::tensorType(op->getResult(0)).getElementType();
  mlir::OperationState state(op->getLoc(), op->getName(), operands,
                             {mlir::RankedTensorType::get({}, element)}, op->getAttrs());
  owned.emplace_back(builder.create(state));
  llvm::SmallVector<mlir::OpFoldResult> results;
  if (failed((*owned.back())->fold(numbers, results)) || results.size() != 1) return std::nullopt;
  // Perhaps of what it takes, as where zero is added.
  auto same = llvm::dyn_cast<Value>(results.front());
  auto number = llvm::dyn_cast<mlir::DenseFPElementsAttr>(
      same ? numbers[llvm::find(operands, same) - operands.begin()]
           : llvm::cast<mlir::Attribute>(results.front()));
  return number ? std::optional(number.getSplatValue<llvm::APFloat>().convertToDouble())
                : std::nullopt;
}

}  // namespace oriel
