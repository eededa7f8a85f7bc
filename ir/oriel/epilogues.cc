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

// That results are those of a `Base` on the operands less `addend`, and that this one has the type
// of result 0.
template <typename Base>
LogicalResult verifySum(Operation* op, mlir::OpOperand& addend,
                        const typename Base::Properties& properties) {
  InferenceContext context(op->getLoc(), op->getName().getStringRef());
  llvm::SmallVector<Value> operands(op->getOperands());
  operands.erase(operands.begin() + addend.getOperandNumber());
  llvm::SmallVector<mlir::Type> inferred;
  typename Base::Adaptor adaptor(operands, op->getDiscardableAttrDictionary(), properties);
  if (failed(Base::inferReturnTypes(op->getContext(), op->getLoc(), adaptor, inferred))) {
    return failure();
  }
  if (!areTypesOrWide(inferred, op->getResultTypes())) {
    return context.refuse("expects results of the types of ", Base::getOperationName());
  }
  return context.expectType("an addend", addend.get(), op->getResult(0).getType());
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

}  // namespace

void attachFusions(mlir::MLIRContext* context) {
  LinearOp::attachInterface<LinearEpilogues>(*context);
  LinearWeightGradOp::attachInterface<WeightGradEpilogues>(*context);
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

}  // namespace oriel::ir
