// Optimizer steps of several parameters.
#include "ir/oriel/fused.h"
#include "ir/oriel/inference.h"

namespace oriel::ir {

using mlir::LogicalResult;
using mlir::Operation;
using mlir::success;
using mlir::Type;
using mlir::TypeRange;
using mlir::Value;
using mlir::ValueRange;

namespace {

// A master and what it is the master of.
bool isMasterOf(Type master, Type rounded) { return master.isF32() && rounded.isBF16(); }

// The `i`-th of `count` groups of one size.
ValueRange groupOf(ValueRange values, unsigned count, unsigned i) {
  return values.slice(i * count, count);
}

LogicalResult verifyShapes(const InferenceContext& context, llvm::StringRef name,
                           ValueRange parameters, ValueRange others) {
  for (auto [parameter, other] : llvm::zip_equal(parameters, others)) {
    if (failed(context.expectShape(name, other, shapeOf(parameter)))) return mlir::failure();
  }
  return success();
}

LogicalResult verifyNew(const InferenceContext& context, llvm::StringRef name, ValueRange old,
                        ValueRange news) {
  if (old.getTypes() == news.getTypes()) return success();
  return context.refuse("expects ", name, " of the types of those that they replace");
}

// Of `others` there is one for each parameter, or none.
LogicalResult verifyAllOrNone(const InferenceContext& context, llvm::StringRef plural,
                              llvm::StringRef one, ValueRange parameters, ValueRange others) {
  if (others.empty() || others.size() == parameters.size()) {
    return verifyShapes(context, one, parameters.take_front(others.size()), others);
  }
  return context.refuse("expects ", parameters.size(), " ", plural, " or none, got ",
                        others.size());
}

LogicalResult verifyRounded(const InferenceContext& context, ValueRange parameters,
                            ValueRange rounded) {
  if (failed(verifyAllOrNone(context, "rounded parameters", "a rounded parameter", parameters,
                             rounded))) {
    return mlir::failure();
  }
  for (auto [parameter, narrow] : llvm::zip(parameters, rounded)) {
    if (!isMasterOf(elementOf(parameter), elementOf(narrow))) {
      return context.refuse("can't round ", parameter.getType(), " to ", narrow.getType());
    }
  }
  return success();
}

LogicalResult verifyRemainders(const InferenceContext& context, ValueRange parameters,
                               ValueRange remainders, ValueRange news) {
  if (remainders.getTypes() != news.getTypes()) {
    return context.refuse("expects new remainders of the types of those that they replace");
  }
  if (failed(verifyAllOrNone(context, "remainders", "a remainder", parameters, remainders))) {
    return mlir::failure();
  }
  for (auto [parameter, unused] : llvm::zip(parameters, remainders)) {
    if (!elementOf(parameter).isBF16()) {
      return context.refuse("expects parameters of bf16 beside remainders, got ",
                            parameter.getType());
    }
  }
  return success();
}

// What all steps have in common.
template <typename Model, typename OpTy>
struct Lists : ListedOpInterface::ExternalModel<Model, OpTy> {
  bool takesRemainder(Operation*) const { return true; }

  bool mayRoundTo(Operation* op, Type elementType) const {
    return isMasterOf(elementOf(op->getOperand(0)), elementType);
  }
};

struct SgdLists : Lists<SgdLists, SgdOp> {
  unsigned getOwnOperandCount(Operation* op) const {
    return llvm::cast<SgdOp>(op).getRemainder() ? 3 : 2;
  }

  Operation* buildList(Operation* op, mlir::OpBuilder& builder, ValueRange operands, unsigned count,
                       TypeRange rounded) const {
    auto step = llvm::cast<SgdOp>(op);
    ValueRange parameters = groupOf(operands, count, 0),
               remainders = step.getRemainder() ? groupOf(operands, count, 2) : ValueRange();
    ValueRange scalars = operands.take_back(2);
    return SgdListOp::create(builder, op->getLoc(), parameters.getTypes(), remainders.getTypes(),
                             rounded, parameters, groupOf(operands, count, 1), remainders,
                             scalars[0], scalars[1], step.getWeightDecay(), step.getOrigin());
  }
};

struct SgdMomentumLists : Lists<SgdMomentumLists, SgdMomentumOp> {
  unsigned getOwnOperandCount(Operation* op) const {
    return llvm::cast<SgdMomentumOp>(op).getRemainder() ? 4 : 3;
  }

  Operation* buildList(Operation* op, mlir::OpBuilder& builder, ValueRange operands, unsigned count,
                       TypeRange rounded) const {
    auto step = llvm::cast<SgdMomentumOp>(op);
    ValueRange parameters = groupOf(operands, count, 0), buffers = groupOf(operands, count, 2),
               remainders = step.getRemainder() ? groupOf(operands, count, 3) : ValueRange();
    ValueRange scalars = operands.take_back(2);
    return SgdMomentumListOp::create(builder, op->getLoc(), parameters.getTypes(),
                                     buffers.getTypes(), remainders.getTypes(), rounded, parameters,
                                     groupOf(operands, count, 1), buffers, remainders, scalars[0],
                                     scalars[1], step.getMomentum(), step.getNesterov(),
                                     step.getWeightDecay(), step.getOrigin());
  }
};

struct AdamWLists : Lists<AdamWLists, AdamWOp> {
  unsigned getOwnOperandCount(Operation* op) const {
    return llvm::cast<AdamWOp>(op).getRemainder() ? 5 : 4;
  }

  Operation* buildList(Operation* op, mlir::OpBuilder& builder, ValueRange operands, unsigned count,
                       TypeRange rounded) const {
    auto step = llvm::cast<AdamWOp>(op);
    ValueRange parameters = groupOf(operands, count, 0), averages = groupOf(operands, count, 2),
               squares = groupOf(operands, count, 3),
               remainders = step.getRemainder() ? groupOf(operands, count, 4) : ValueRange();
    ValueRange scalars = operands.take_back(3);
    return AdamWListOp::create(builder, op->getLoc(), parameters.getTypes(), averages.getTypes(),
                               squares.getTypes(), remainders.getTypes(), rounded, parameters,
                               groupOf(operands, count, 1), averages, squares, remainders,
                               scalars[0], scalars[1], scalars[2], step.getBeta1(), step.getBeta2(),
                               step.getEpsilon(), step.getWeightDecay(), step.getOrigin());
  }
};

// What the ops read that the list is made of, the cast of each new parameter too: so that what is
// predicted of a program does not change as lists are formed.
int64_t bytesReadByAll(Operation* list, ValueRange parameters, ValueRange scalars,
                       ValueRange rounded) {
  const int64_t more = static_cast<int64_t>(parameters.size()) - 1;
  return typesBytes(list->getOperandTypes()) + more * typesBytes(scalars.getTypes()) +
         (rounded.empty() ? 0 : typesBytes(parameters.getTypes()));
}

}  // namespace

CastOp roundingOf(ListedOpInterface op) {
  for (Operation* user : op->getResult(0).getUsers()) {
    auto cast = llvm::dyn_cast<CastOp>(user);
    if (cast && op.mayRoundTo(cast.getType().getElementType())) return cast;
  }
  return {};
}

void attachLists(mlir::MLIRContext* context) {
  SgdOp::attachInterface<SgdLists>(*context);
  SgdMomentumOp::attachInterface<SgdMomentumLists>(*context);
  AdamWOp::attachInterface<AdamWLists>(*context);
}

llvm::StringRef SgdListOp::getKernelName() { return "sgd"; }

// Whether result `result` of a list replaces the operand: group i of them replaces group
// replaced[i].
static bool replaces(unsigned result, unsigned operand, unsigned count,
                     llvm::ArrayRef<unsigned> replaced) {
  const unsigned group = result / count;
  return group < replaced.size() && operand == replaced[group] * count + result % count;
}

bool SgdListOp::mayOverwrite(unsigned result, unsigned operand) {
  constexpr unsigned kReplaced[] = {0, 2};
  return replaces(result, operand, getParameters().size(),
                  llvm::ArrayRef(kReplaced).drop_back(getRemainders().empty() ? 1 : 0));
}

int64_t SgdListOp::getBytesRead() {
  return bytesReadByAll(*this, getParameters(), getOperands().take_back(2), getRounded());
}

LogicalResult SgdListOp::verify() {
  InferenceContext context(getLoc(), getOperationName());
  return success(
      succeeded(verifyShapes(context, "a gradient", getParameters(), getGradients())) &&
      succeeded(context.expectRank("a gradient_scale", getGradientScale(), 0)) &&
      succeeded(context.expectRank("a learning_rate", getLearningRate(), 0)) &&
      succeeded(verifyNew(context, "new parameters", getParameters(), getNewParameters())) &&
      succeeded(verifyRemainders(context, getParameters(), getRemainders(), getNewRemainders())) &&
      succeeded(verifyRounded(context, getParameters(), getRounded())));
}

llvm::StringRef SgdMomentumListOp::getKernelName() { return "sgd_momentum"; }

bool SgdMomentumListOp::mayOverwrite(unsigned result, unsigned operand) {
  constexpr unsigned kReplaced[] = {0, 2, 3};
  return replaces(result, operand, getParameters().size(),
                  llvm::ArrayRef(kReplaced).drop_back(getRemainders().empty() ? 1 : 0));
}

int64_t SgdMomentumListOp::getBytesRead() {
  return bytesReadByAll(*this, getParameters(), getOperands().take_back(2), getRounded());
}

LogicalResult SgdMomentumListOp::verify() {
  InferenceContext context(getLoc(), getOperationName());
  return success(
      succeeded(verifyShapes(context, "a gradient", getParameters(), getGradients())) &&
      succeeded(
          verifyShapes(context, "a momentum_buffer", getParameters(), getMomentumBuffers())) &&
      succeeded(context.expectRank("a gradient_scale", getGradientScale(), 0)) &&
      succeeded(context.expectRank("a learning_rate", getLearningRate(), 0)) &&
      succeeded(verifyNew(context, "new parameters", getParameters(), getNewParameters())) &&
      succeeded(verifyNew(context, "new momentum buffers", getMomentumBuffers(),
                          getNewMomentumBuffers())) &&
      succeeded(verifyRemainders(context, getParameters(), getRemainders(), getNewRemainders())) &&
      succeeded(verifyRounded(context, getParameters(), getRounded())));
}

llvm::StringRef AdamWListOp::getKernelName() { return "adamw"; }

// Each result replaces the operand that it is the new value of; two never share one.
bool AdamWListOp::mayOverwrite(unsigned result, unsigned operand) {
  constexpr unsigned kReplaced[] = {0, 2, 3, 4};
  return replaces(result, operand, getParameters().size(),
                  llvm::ArrayRef(kReplaced).drop_back(getRemainders().empty() ? 1 : 0));
}

int64_t AdamWListOp::getBytesRead() {
  return bytesReadByAll(*this, getParameters(), getOperands().take_back(3), getRounded());
}

LogicalResult AdamWListOp::verify() {
  InferenceContext context(getLoc(), getOperationName());
  return success(
      succeeded(verifyShapes(context, "a gradient", getParameters(), getGradients())) &&
      succeeded(verifyShapes(context, "an exp_avg", getParameters(), getExpAvgs())) &&
      succeeded(verifyShapes(context, "an exp_avg_sq", getParameters(), getExpAvgSqs())) &&
      succeeded(context.expectRank("a gradient_scale", getGradientScale(), 0)) &&
      succeeded(context.expectRank("a learning_rate", getLearningRate(), 0)) &&
      succeeded(context.expectRank("a step", getStep(), 0)) &&
      succeeded(verifyNew(context, "new parameters", getParameters(), getNewParameters())) &&
      succeeded(verifyNew(context, "new averages", getExpAvgs(), getNewExpAvgs())) &&
      succeeded(verifyNew(context, "new averages", getExpAvgSqs(), getNewExpAvgSqs())) &&
      succeeded(verifyRemainders(context, getParameters(), getRemainders(), getNewRemainders())) &&
      succeeded(verifyRounded(context, getParameters(), getRounded())));
}

}  // namespace oriel::ir
