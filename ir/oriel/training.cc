#include "ir/oriel/inference.h"
#include "ir/oriel/oriel.h"

namespace oriel::ir {

using mlir::failure;
using mlir::LogicalResult;
using mlir::success;
using mlir::Value;

LogicalResult ParameterOp::verify() {
  if (getOnnxName().empty()) return emitOpError("expects an onnx_name that is not empty");
  auto type = llvm::dyn_cast<mlir::RankedTensorType>(getType());
  if (type && type.hasStaticShape() && type.getElementType().isIntOrFloat()) return success();
  return emitOpError("expects a type that is a statically shaped tensor of numbers, got ")
         << getType();
}

namespace {

// Logits [n.., v], labels [n..].
LogicalResult checkLogits(const InferenceContext& context, Value logits, Value labels) {
  if (shapeOf(logits).empty()) {
    return context.refuse("expects logits of rank at least 1, got rank 0");
  }
  return context.expectShape("labels", labels, shapeOf(logits).drop_back());
}

}  // namespace

LogicalResult CrossEntropyOp::inferReturnTypes(mlir::MLIRContext*, MaybeLocation location,
                                               Adaptor adaptor,
                                               llvm::SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, getOperationName());
  Value logits = adaptor.getLogits();
  if (failed(checkLogits(context, logits, adaptor.getLabels()))) return failure();
  mlir::Type elementType = wideType(elementOf(logits));
  auto scalar = mlir::RankedTensorType::get({}, elementType);
  results.append(
      {scalar, scalar, mlir::RankedTensorType::get(shapeOf(logits).drop_back(), elementType)});
  return success();
}

LogicalResult TokenLossesOp::inferReturnTypes(mlir::MLIRContext*, MaybeLocation location,
                                              Adaptor adaptor,
                                              llvm::SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, getOperationName());
  Value logits = adaptor.getLogits();
  if (failed(checkLogits(context, logits, adaptor.getLabels()))) return failure();
  results.append(
      2, mlir::RankedTensorType::get(shapeOf(logits).drop_back(), wideType(elementOf(logits))));
  return success();
}

LogicalResult CrossEntropyGradOp::inferReturnTypes(mlir::MLIRContext*, MaybeLocation location,
                                                   Adaptor adaptor,
                                                   llvm::SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, getOperationName());
  Value logits = adaptor.getLogits();
  if (failed(checkLogits(context, logits, adaptor.getLabels()))) return failure();
  mlir::Type elementType = wideType(elementOf(logits));
  auto rows = mlir::RankedTensorType::get(shapeOf(logits).drop_back(), elementType);
  Value cotangent = adaptor.getCotangent();
  const bool isOfAll = shapeOf(cotangent).empty();
  if (failed(context.expectType("a cotangent", cotangent,
                                isOfAll ? rows.clone(llvm::ArrayRef<int64_t>{}) : rows)) ||
      failed(context.expectType("a logsumexp", adaptor.getLogsumexp(), rows)) ||
      failed(context.expectPiece(adaptor.getFirst(), "classes", adaptor.getClasses(),
                                 shapeOf(logits).back()))) {
    return failure();
  }
  results.push_back(logits.getType());
  return success();
}

// The logits, row by row.
bool CrossEntropyGradOp::mayOverwrite(unsigned, unsigned operand) { return operand == 1; }

LogicalResult SumExpOp::inferReturnTypes(mlir::MLIRContext*, MaybeLocation location,
                                         Adaptor adaptor,
                                         llvm::SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, getOperationName());
  llvm::ArrayRef<int64_t> input = shapeOf(adaptor.getInput());
  if (input.empty()) return context.refuse("expects an input of rank at least 1, got rank 0");
  mlir::Type elementType = wideType(elementOf(adaptor.getInput()));
  if (failed(context.expectShape("a shift", adaptor.getShift(), input.drop_back())) ||
      failed(context.expectElementType("a shift", adaptor.getShift(), elementType))) {
    return failure();
  }
  results.push_back(adaptor.getShift().getType());
  return success();
}

// A subtraction, an exponential and an addition each.
int64_t SumExpOp::getFlops() { return boundedProduct({3, elementCount(shapeOf(getInput()))}); }

LogicalResult LabelLogitsOp::inferReturnTypes(mlir::MLIRContext*, MaybeLocation location,
                                              Adaptor adaptor,
                                              llvm::SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, getOperationName());
  Value logits = adaptor.getLogits();
  if (failed(checkLogits(context, logits, adaptor.getLabels())) ||
      failed(context.expectPiece(adaptor.getFirst(), "classes", adaptor.getClasses(),
                                 shapeOf(logits).back()))) {
    return failure();
  }
  return context.addResult(shapeOf(adaptor.getLabels()), elementOf(logits), results);
}

// The labels, and one logit each.
int64_t LabelLogitsOp::getBytesRead() { return typesBytes({getLabels().getType(), getType()}); }

LogicalResult SumSquaresOp::verify() {
  return InferenceContext(getLoc(), getOperationName()).expectRank("a result", getResult(), 0);
}

// What is of f32 is whole.
static LogicalResult verifyRemainder(const InferenceContext& context, Value parameter,
                                     Value remainder) {
  if (!remainder) return success();
  if (failed(context.expectShape("a remainder", remainder, shapeOf(parameter)))) return failure();
  if (elementOf(parameter).isBF16()) return success();
  return context.refuse("expects a parameter of bf16 beside its remainder, got ",
                        parameter.getType());
}

LogicalResult SgdOp::inferReturnTypes(mlir::MLIRContext*, MaybeLocation location, Adaptor adaptor,
                                      llvm::SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, getOperationName());
  Value parameter = adaptor.getParameter();
  if (failed(context.expectShape("a gradient", adaptor.getGradient(), shapeOf(parameter))) ||
      failed(context.expectRank("a gradient_scale", adaptor.getGradientScale(), 0)) ||
      failed(context.expectRank("a learning_rate", adaptor.getLearningRate(), 0)) ||
      failed(verifyRemainder(context, parameter, adaptor.getRemainder()))) {
    return failure();
  }
  results.push_back(parameter.getType());
  if (adaptor.getRemainder()) results.push_back(adaptor.getRemainder().getType());
  return success();
}

bool SgdOp::mayOverwrite(unsigned result, unsigned operand) {
  constexpr unsigned kReplaced[] = {0, 2};
  return operand == kReplaced[result];
}

LogicalResult SgdMomentumOp::inferReturnTypes(mlir::MLIRContext*, MaybeLocation location,
                                              Adaptor adaptor,
                                              llvm::SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, getOperationName());
  Value parameter = adaptor.getParameter();
  llvm::ArrayRef<int64_t> shape = shapeOf(parameter);
  if (failed(context.expectShape("a gradient", adaptor.getGradient(), shape)) ||
      failed(context.expectShape("a momentum_buffer", adaptor.getMomentumBuffer(), shape)) ||
      failed(context.expectRank("a gradient_scale", adaptor.getGradientScale(), 0)) ||
      failed(context.expectRank("a learning_rate", adaptor.getLearningRate(), 0)) ||
      failed(verifyRemainder(context, parameter, adaptor.getRemainder()))) {
    return failure();
  }
  results.append({parameter.getType(), adaptor.getMomentumBuffer().getType()});
  if (adaptor.getRemainder()) results.push_back(adaptor.getRemainder().getType());
  return success();
}

bool SgdMomentumOp::mayOverwrite(unsigned result, unsigned operand) {
  constexpr unsigned kReplaced[] = {0, 2, 3};
  return operand == kReplaced[result];
}

LogicalResult AdamWOp::inferReturnTypes(mlir::MLIRContext*, MaybeLocation location, Adaptor adaptor,
                                        llvm::SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, getOperationName());
  Value parameter = adaptor.getParameter();
  llvm::ArrayRef<int64_t> shape = shapeOf(parameter);
  if (failed(context.expectShape("a gradient", adaptor.getGradient(), shape)) ||
      failed(context.expectShape("an exp_avg", adaptor.getExpAvg(), shape)) ||
      failed(context.expectShape("an exp_avg_sq", adaptor.getExpAvgSq(), shape)) ||
      failed(context.expectRank("a gradient_scale", adaptor.getGradientScale(), 0)) ||
      failed(context.expectRank("a learning_rate", adaptor.getLearningRate(), 0)) ||
      failed(context.expectRank("a step", adaptor.getStep(), 0)) ||
      failed(verifyRemainder(context, parameter, adaptor.getRemainder()))) {
    return failure();
  }
  results.append(
      {parameter.getType(), adaptor.getExpAvg().getType(), adaptor.getExpAvgSq().getType()});
  if (adaptor.getRemainder()) results.push_back(adaptor.getRemainder().getType());
  return success();
}

// Each result replaces the operand that it is the new value of; two never share one.
bool AdamWOp::mayOverwrite(unsigned result, unsigned operand) {
  constexpr unsigned kReplaced[] = {0, 2, 3, 4};
  return operand == kReplaced[result];
}

}  // namespace oriel::ir
