// Normalisations as their kernels have them, and of what they are made.
#include "ir/interfaces/interfaces.h"
#include "ir/oriel/fused.h"
#include "ir/oriel/inference.h"

namespace oriel::ir {

using mlir::failure;
using mlir::LogicalResult;
using mlir::OpBuilder;
using mlir::Operation;
using mlir::success;
using mlir::Type;
using mlir::Value;
using mlir::ValueRange;

namespace {

// The forms of each op, whether it is fused already or not.

template <typename OpTy>
Operation* layerNorm(OpBuilder& builder, OpTy op, Value input, Value addend) {
  const Type type = input.getType();
  return FusedLayerNormOp::create(builder, op.getLoc(), type, op.getMean().getType(),
                                  op.getInvStd().getType(), addend ? type : Type(), input, addend,
                                  op.getWeight(), op.getBias(), op.getEpsilon(), op.getOrigin());
}

template <typename OpTy>
Operation* rmsNorm(OpBuilder& builder, OpTy op, Value input, Value addend) {
  const Type type = input.getType();
  return FusedRmsNormOp::create(builder, op.getLoc(), type, op.getInvRms().getType(),
                                addend ? type : Type(), input, addend, op.getWeight(),
                                op.getEpsilon(), op.getWeightOffset(), op.getOrigin());
}

template <typename OpTy>
Operation* layerNormGrad(OpBuilder& builder, OpTy op, Value cotangent, Value input, Value addend) {
  return FusedLayerNormGradOp::create(builder, op.getLoc(), input.getType(),
                                      op.getWeightGrad().getType(), op.getBiasGrad().getType(),
                                      cotangent, input, op.getWeight(), op.getMean(),
                                      op.getInvStd(), addend, op.getOrigin());
}

template <typename OpTy>
Operation* rmsNormGrad(OpBuilder& builder, OpTy op, Value cotangent, Value input, Value addend) {
  return FusedRmsNormGradOp::create(builder, op.getLoc(), input.getType(),
                                    op.getWeightGrad().getType(), cotangent, input, op.getWeight(),
                                    op.getInvRms(), addend, op.getWeightOffset(), op.getOrigin());
}

struct NarrowLayerNorm : NarrowOpInterface::ExternalModel<NarrowLayerNorm, LayerNormOp> {
  unsigned getNarrowOperandCount(Operation*) const { return 1; }
  Operation* buildNarrow(Operation* op, OpBuilder& builder, ValueRange narrow) const {
    return layerNorm(builder, llvm::cast<LayerNormOp>(op), narrow[0], Value());
  }
};

struct NarrowRmsNorm : NarrowOpInterface::ExternalModel<NarrowRmsNorm, RmsNormOp> {
  unsigned getNarrowOperandCount(Operation*) const { return 1; }
  Operation* buildNarrow(Operation* op, OpBuilder& builder, ValueRange narrow) const {
    return rmsNorm(builder, llvm::cast<RmsNormOp>(op), narrow[0], Value());
  }
};

struct NarrowLayerNormGrad
    : NarrowOpInterface::ExternalModel<NarrowLayerNormGrad, LayerNormGradOp> {
  unsigned getNarrowOperandCount(Operation*) const { return 2; }
  Operation* buildNarrow(Operation* op, OpBuilder& builder, ValueRange narrow) const {
    return layerNormGrad(builder, llvm::cast<LayerNormGradOp>(op), narrow[0], narrow[1], Value());
  }
};

struct NarrowRmsNormGrad : NarrowOpInterface::ExternalModel<NarrowRmsNormGrad, RmsNormGradOp> {
  unsigned getNarrowOperandCount(Operation*) const { return 2; }
  Operation* buildNarrow(Operation* op, OpBuilder& builder, ValueRange narrow) const {
    return rmsNormGrad(builder, llvm::cast<RmsNormGradOp>(op), narrow[0], narrow[1], Value());
  }
};

struct SumLayerNorm : PrologueOpInterface::ExternalModel<SumLayerNorm, LayerNormOp> {
  Operation* buildOfSum(Operation* op, OpBuilder& builder, Value lhs, Value rhs) const {
    return layerNorm(builder, llvm::cast<LayerNormOp>(op), lhs, rhs);
  }
};

struct SumRmsNorm : PrologueOpInterface::ExternalModel<SumRmsNorm, RmsNormOp> {
  Operation* buildOfSum(Operation* op, OpBuilder& builder, Value lhs, Value rhs) const {
    return rmsNorm(builder, llvm::cast<RmsNormOp>(op), lhs, rhs);
  }
};

struct LayerNormGradSum : EpilogueOpInterface::ExternalModel<LayerNormGradSum, LayerNormGradOp> {
  Operation* buildSum(Operation* op, OpBuilder& builder, Value addend) const {
    auto grad = llvm::cast<LayerNormGradOp>(op);
    return layerNormGrad(builder, grad, grad.getCotangent(), grad.getInput(), addend);
  }
};

struct RmsNormGradSum : EpilogueOpInterface::ExternalModel<RmsNormGradSum, RmsNormGradOp> {
  Operation* buildSum(Operation* op, OpBuilder& builder, Value addend) const {
    auto grad = llvm::cast<RmsNormGradOp>(op);
    return rmsNormGrad(builder, grad, grad.getCotangent(), grad.getInput(), addend);
  }
};

// What verifiers have in common: tensors of the input's type, vectors of the weight's shape and
// type, and statistics for each row.
class NormVerifier {
 public:
  NormVerifier(Operation* op, Value input, Value weight)
      : context_(op->getLoc(), op->getName().getStringRef()), input_(input), weight_(weight) {}

  LogicalResult operands() const {
    if (shapeOf(input_).empty()) return context_.refuse("expects an input of rank 1 or more");
    const Type own = elementOf(input_);
    if (failed(context_.expectShape("a weight", weight_, {shapeOf(input_).back()}))) {
      return failure();
    }
    if (elementOf(weight_) == own) return success();
    return context_.expectElementType("a weight", weight_, wideType(own));
  }
  // Null is right, too.
  LogicalResult tensor(llvm::StringRef name, Value value) const {
    return success(!value || succeeded(context_.expectType(name, value, input_.getType())));
  }
  LogicalResult vector(llvm::StringRef name, Value value) const {
    return success(!value || succeeded(context_.expectShape(name, value, shapeOf(weight_))));
  }
  LogicalResult statistic(llvm::StringRef name, Value value) const {
    auto type =
        mlir::RankedTensorType::get(shapeOf(input_).drop_back(), wideType(elementOf(input_)));
    return context_.expectType(name, value, type);
  }
  // An addend, and the sum that it is there for.
  LogicalResult sum(Value addend, Value sum) const {
    if (failed(tensor("an addend", addend)) || failed(tensor("a sum", sum))) return failure();
    if (!addend == !sum) return success();
    return context_.refuse("expects an addend and a sum, or neither");
  }

 private:
  InferenceContext context_;
  Value input_, weight_;
};

LogicalResult all(std::initializer_list<LogicalResult> results) {
  return success(llvm::all_of(results, mlir::succeeded));
}

// The sum may lie where one of its summands does: each element is read before it is written.
bool isSumInPlace(Value sum, Operation* op, unsigned result, unsigned operand) {
  return sum && op->getResult(result) == sum && operand < 2;
}

// Likewise for a gradient and what is added to it.
bool isIntoAddend(Value addend, Operation* op, unsigned result, unsigned operand) {
  return addend && result == 0 && operand == op->getNumOperands() - 1;
}

}  // namespace

void attachNorms(mlir::MLIRContext* context) {
  LayerNormOp::attachInterface<NarrowLayerNorm, SumLayerNorm>(*context);
  RmsNormOp::attachInterface<NarrowRmsNorm, SumRmsNorm>(*context);
  LayerNormGradOp::attachInterface<NarrowLayerNormGrad, LayerNormGradSum>(*context);
  RmsNormGradOp::attachInterface<NarrowRmsNormGrad, RmsNormGradSum>(*context);
}

LogicalResult FusedLayerNormOp::verify() {
  NormVerifier norm(*this, getInput(), getWeight());
  if (failed(norm.operands())) return failure();
  return all({norm.vector("a bias", getBias()), norm.tensor("a result", getResult()),
              norm.statistic("a mean", getMean()), norm.statistic("an inv_std", getInvStd()),
              norm.sum(getAddend(), getSum())});
}

llvm::StringRef FusedLayerNormOp::getKernelName() {
  return getAddend() ? "add_layer_norm" : "layer_norm";
}

bool FusedLayerNormOp::mayOverwrite(unsigned result, unsigned operand) {
  return isSumInPlace(getSum(), *this, result, operand);
}

Operation* FusedLayerNormOp::buildOfSum(OpBuilder& builder, Value lhs, Value rhs) {
  return getAddend() ? nullptr : layerNorm(builder, *this, lhs, rhs);
}

LogicalResult FusedRmsNormOp::verify() {
  NormVerifier norm(*this, getInput(), getWeight());
  if (failed(norm.operands())) return failure();
  return all({norm.tensor("a result", getResult()), norm.statistic("an inv_rms", getInvRms()),
              norm.sum(getAddend(), getSum())});
}

llvm::StringRef FusedRmsNormOp::getKernelName() {
  return getAddend() ? "add_rms_norm" : "rms_norm";
}

bool FusedRmsNormOp::mayOverwrite(unsigned result, unsigned operand) {
  return isSumInPlace(getSum(), *this, result, operand);
}

Operation* FusedRmsNormOp::buildOfSum(OpBuilder& builder, Value lhs, Value rhs) {
  return getAddend() ? nullptr : rmsNorm(builder, *this, lhs, rhs);
}

LogicalResult FusedLayerNormGradOp::verify() {
  NormVerifier norm(*this, getInput(), getWeight());
  if (failed(norm.operands())) return failure();
  return all({norm.tensor("a cotangent", getCotangent()), norm.statistic("a mean", getMean()),
              norm.statistic("an inv_std", getInvStd()), norm.tensor("an addend", getAddend()),
              norm.tensor("an input_grad", getInputGrad()),
              norm.vector("a weight_grad", getWeightGrad()),
              norm.vector("a bias_grad", getBiasGrad())});
}

// The addend tells.
llvm::StringRef FusedLayerNormGradOp::getKernelName() { return "layer_norm_grad"; }

bool FusedLayerNormGradOp::mayOverwrite(unsigned result, unsigned operand) {
  return isIntoAddend(getAddend(), *this, result, operand);
}

Operation* FusedLayerNormGradOp::buildSum(OpBuilder& builder, Value addend) {
  if (getAddend()) return nullptr;
  return layerNormGrad(builder, *this, getCotangent(), getInput(), addend);
}

LogicalResult FusedRmsNormGradOp::verify() {
  NormVerifier norm(*this, getInput(), getWeight());
  if (failed(norm.operands())) return failure();
  return all({norm.tensor("a cotangent", getCotangent()), norm.statistic("an inv_rms", getInvRms()),
              norm.tensor("an addend", getAddend()), norm.tensor("an input_grad", getInputGrad()),
              norm.vector("a weight_grad", getWeightGrad())});
}

// The addend tells.
llvm::StringRef FusedRmsNormGradOp::getKernelName() { return "rms_norm_grad"; }

bool FusedRmsNormGradOp::mayOverwrite(unsigned result, unsigned operand) {
  return isIntoAddend(getAddend(), *this, result, operand);
}

Operation* FusedRmsNormGradOp::buildSum(OpBuilder& builder, Value addend) {
  if (getAddend()) return nullptr;
  return rmsNormGrad(builder, *this, getCotangent(), getInput(), addend);
}

}  // namespace oriel::ir
