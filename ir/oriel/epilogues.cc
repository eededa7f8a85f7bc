// Products that add something, and of what they are made.
#include "ir/interfaces/interfaces.h"
#include "ir/oriel/fused.h"
#include "ir/oriel/inference.h"

namespace oriel::ir {

using mlir::failure;
using mlir::LogicalResult;
using mlir::OpBuilder;
using mlir::Operation;
using mlir::success;
using mlir::Value;

namespace {

// The type that the product has which an op begins with: a `Base` on `operands`.
template <typename Base>
mlir::FailureOr<mlir::RankedTensorType> productType(Operation* op, mlir::ValueRange operands,
                                                    const typename Base::Properties& properties) {
  llvm::SmallVector<mlir::Type> inferred;
  typename Base::Adaptor adaptor(operands, op->getDiscardableAttrDictionary(), properties);
  if (failed(Base::inferReturnTypes(op->getContext(), op->getLoc(), adaptor, inferred))) {
    return failure();
  }
  return llvm::cast<mlir::RankedTensorType>(inferred[0]);
}

// That results are those of a `Base` on the operands less `addend`, and that this one has the type
// of result 0.
template <typename Base>
LogicalResult verifySum(Operation* op, mlir::OpOperand& addend,
                        const typename Base::Properties& properties) {
  InferenceContext context(op->getLoc(), op->getName().getStringRef());
  llvm::SmallVector<Value> operands(op->getOperands());
  operands.erase(operands.begin() + addend.getOperandNumber());
  auto type = productType<Base>(op, operands, properties);
  if (failed(type)) return failure();
  if (!areTypesOrWide({*type}, op->getResultTypes())) {
    return context.refuse("expects results of the types of ", Base::getOperationName());
  }
  return context.expectType("an addend", addend.get(), op->getResult(0).getType());
}

// Of an activation or its derivative behind a `linear` on `operands`.
template <typename OpTy>
LogicalResult verifyActivation(OpTy op, mlir::ValueRange operands, Value preactivation) {
  InferenceContext context(op.getLoc(), OpTy::getOperationName());
  LinearOp::Properties properties;
  properties.transpose_weight = op.getTransposeWeightAttr();
  auto type = productType<LinearOp>(op, operands, properties);
  if (failed(type) || failed(checkActivationKind(context, op.getKind()))) return failure();
  mlir::Type result = op.getResult().getType();
  if (!areTypesOrWide({*type}, {result})) {
    return context.refuse("expects a result of the type of oriel.linear, ", *type);
  }
  return preactivation ? context.expectType("a preactivation", preactivation, result) : success();
}

// Operations of a product, and one for each of its elements behind it.
int64_t linearFlops(Value result, Value input) {
  const int64_t count = elementCount(shapeOf(result));
  return boundedProduct({2, count, shapeOf(input).back()}) + count;
}

bool isIntoAddend(unsigned result, unsigned operand, mlir::OpOperand& addend) {
  return result == 0 && operand == addend.getOperandNumber();
}

struct LinearEpilogues : EpilogueOpInterface::ExternalModel<LinearEpilogues, LinearOp> {
  Operation* buildSum(Operation* op, OpBuilder& builder, Value addend) const {
    auto linear = llvm::cast<LinearOp>(op);
    return LinearAddOp::create(builder, op->getLoc(), addend.getType(), linear.getInput(),
                               linear.getWeight(), linear.getBias(), addend,
                               linear.getTransposeWeight(), linear.getOrigin());
  }
};

struct WeightGradEpilogues
    : EpilogueOpInterface::ExternalModel<WeightGradEpilogues, LinearWeightGradOp> {
  Operation* buildSum(Operation* op, OpBuilder& builder, Value addend) const {
    auto grad = llvm::cast<LinearWeightGradOp>(op);
    return LinearWeightGradAddOp::create(builder, op->getLoc(), addend.getType(), grad.getInput(),
                                         grad.getCotangent(), addend, grad.getTransposeWeight(),
                                         grad.getOrigin());
  }
};

struct ExpertWeightGradEpilogues
    : EpilogueOpInterface::ExternalModel<ExpertWeightGradEpilogues, ExpertLinearWeightGradOp> {
  Operation* buildSum(Operation* op, OpBuilder& builder, Value addend) const {
    auto grad = llvm::cast<ExpertLinearWeightGradOp>(op);
    mlir::Type elementType = elementOf(addend);
    if (wideType(elementType) != elementType) return nullptr;
    return ExpertLinearWeightGradAddOp::create(
        builder, op->getLoc(), addend.getType(), grad.getInput(), grad.getCotangent(),
        grad.getChoice(), grad.getFirst(), addend, grad.getTransposeWeight(), grad.getExperts(),
        grad.getOrigin());
  }
};

}  // namespace

void attachFusions(mlir::MLIRContext* context) {
  LinearOp::attachInterface<LinearEpilogues>(*context);
  LinearWeightGradOp::attachInterface<WeightGradEpilogues>(*context);
  ExpertLinearWeightGradOp::attachInterface<ExpertWeightGradEpilogues>(*context);
  attachNorms(context);
}

LogicalResult LinearAddOp::verify() {
  LinearOp::Properties properties;
  properties.transpose_weight = getTransposeWeightAttr();
  return verifySum<LinearOp>(*this, getAddendMutable(), properties);
}

llvm::StringRef LinearAddOp::getKernelName() { return "linear_add"; }

bool LinearAddOp::mayOverwrite(unsigned result, unsigned operand) {
  return isIntoAddend(result, operand, getAddendMutable());
}

int64_t LinearAddOp::getFlops() {
  const int64_t count = elementCount(getType().getShape());
  return boundedProduct({2, count, shapeOf(getInput()).back()}) + count;
}

LogicalResult LinearWeightGradAddOp::verify() {
  LinearWeightGradOp::Properties properties;
  properties.transpose_weight = getTransposeWeightAttr();
  return verifySum<LinearWeightGradOp>(*this, getAddendMutable(), properties);
}

// The addend tells.
llvm::StringRef LinearWeightGradAddOp::getKernelName() { return "linear_weight_grad"; }

bool LinearWeightGradAddOp::mayOverwrite(unsigned result, unsigned operand) {
  return isIntoAddend(result, operand, getAddendMutable());
}

int64_t LinearWeightGradAddOp::getFlops() {
  return boundedProduct({2, elementCount(shapeOf(getCotangent())), shapeOf(getInput()).back()}) +
         elementCount(getType().getShape());
}

bool isEpilogueActivation(llvm::StringRef kind) { return kind == "gelu_tanh"; }

LogicalResult LinearActivationOp::verify() {
  return verifyActivation(*this, getOperands(), getPreactivation());
}

llvm::StringRef LinearActivationOp::getKernelName() { return "linear_activation"; }
bool LinearActivationOp::mayOverwrite(unsigned, unsigned) { return false; }
int64_t LinearActivationOp::getFlops() { return linearFlops(getResult(), getInput()); }

LogicalResult LinearActivationGradOp::verify() {
  return verifyActivation(*this, getOperands().take_front(2), getPreactivation());
}

llvm::StringRef LinearActivationGradOp::getKernelName() { return "linear_activation_grad"; }
// The product is in the result's place before the preactivation is read.
bool LinearActivationGradOp::mayOverwrite(unsigned, unsigned) { return false; }
int64_t LinearActivationGradOp::getFlops() { return linearFlops(getResult(), getCotangent()); }

LogicalResult LinearGradsOp::verify() {
  InferenceContext context(getLoc(), getOperationName());
  LinearWeightGradOp::Properties properties;
  properties.transpose_weight = getTransposeWeightAttr();
  auto type = productType<LinearWeightGradOp>(*this, getOperands().take_front(2), properties);
  if (failed(type)) return failure();
  if (!areTypesOrWide({*type}, {getWeightGrad().getType()})) {
    return context.refuse("expects a weight_grad of the type of oriel.linear_weight_grad, ", *type);
  }
  if (getAddend() &&
      failed(context.expectType("an addend", getAddend(), getWeightGrad().getType()))) {
    return failure();
  }
  auto bias = mlir::RankedTensorType::get({shapeOf(getCotangent()).back()}, type->getElementType());
  if (!areTypesOrWide({bias}, {getBiasGrad().getType()})) {
    return context.refuse("expects a bias_grad of the type ", bias, ", or wider");
  }
  return success();
}

llvm::StringRef LinearGradsOp::getKernelName() { return "linear_grads"; }

bool LinearGradsOp::mayOverwrite(unsigned result, unsigned operand) {
  return getAddend() && result == 0 && operand == 2;
}

Operation* LinearGradsOp::buildSum(OpBuilder& builder, Value addend) {
  if (getAddend()) return nullptr;
  return create(builder, getLoc(), getResultTypes()[0], getResultTypes()[1], getInput(),
                getCotangent(), addend, getTransposeWeight(), getOrigin());
}

int64_t LinearGradsOp::getFlops() {
  const int64_t count = elementCount(shapeOf(getCotangent()));
  return boundedProduct({2, count, shapeOf(getInput()).back()}) + count +
         elementCount(shapeOf(getWeightGrad()));
}

}  // namespace oriel::ir
