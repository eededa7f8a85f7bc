// The loss of a linear layer's result: types, verifiers, costs and derivative.
#include "ir/oriel/fused.h"
#include "ir/oriel/inference.h"

namespace oriel::ir {

using mlir::failure;
using mlir::LogicalResult;
using mlir::success;
using mlir::Value;

namespace {

// The extents of the product that gives the logits.
struct LogitsShape {
  llvm::ArrayRef<int64_t> rows;
  int64_t depth, classes;
};

LogitsShape logitsShape(Value input, Value weight, bool transposed) {
  return {shapeOf(input).drop_back(), shapeOf(weight)[transposed ? 1 : 0],
          shapeOf(weight)[transposed ? 0 : 1]};
}

LogicalResult checkLogits(const InferenceContext& context, Value input, Value weight, Value labels,
                          Value bias, bool transposed) {
  if (failed(context.expectRank("a weight", weight, 2))) return failure();
  const int64_t depth = shapeOf(weight)[transposed ? 1 : 0];
  if (shapeOf(input).empty() || shapeOf(input).back() != depth) {
    return context.refuse("expects an input with a last dimension of ", depth, ", got ",
                          shapeText(shapeOf(input)));
  }
  const LogitsShape shape = logitsShape(input, weight, transposed);
  mlir::Type elementType = elementOf(input);
  if (failed(context.expectElementType("a weight", weight, elementType)) ||
      failed(context.expectShape("labels", labels, shape.rows))) {
    return failure();
  }
  if (!bias) return success();
  return success(succeeded(context.expectShape("a bias", bias, {shape.classes})) &&
                 succeeded(context.expectElementType("a bias", bias, elementType)));
}

// A product and, for each logit, what a cross entropy does with it.
int64_t lossFlops(const LogitsShape& shape, int64_t products) {
  const int64_t logits = boundedProduct({elementCount(shape.rows), shape.classes});
  return boundedProduct({logits, 2 * products * shape.depth + 3});
}

// What may stand behind the operands that are always there.
struct Rest {
  Value bias, first;
};

bool isFirst(Value value) { return elementOf(value).isInteger(64); }

Rest restOf(mlir::ValueRange rest) {
  Rest result;
  for (Value value : rest) (isFirst(value) ? result.first : result.bias) = value;
  return result;
}

LogicalResult checkRest(const InferenceContext& context, mlir::ValueRange rest) {
  const bool valid = rest.size() < 2 || (rest.size() == 2 && !isFirst(rest[0]) && isFirst(rest[1]));
  if (valid) return success();
  return context.refuse("expects at most a bias and the index of a piece behind its operands");
}

}  // namespace

LogicalResult LinearCrossEntropyOp::inferReturnTypes(mlir::MLIRContext*, MaybeLocation location,
                                                     Adaptor adaptor,
                                                     llvm::SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, getOperationName());
  if (failed(checkLogits(context, adaptor.getInput(), adaptor.getWeight(), adaptor.getLabels(),
                         adaptor.getBias(), adaptor.getTransposeWeight()))) {
    return failure();
  }
  mlir::Type elementType = wideType(elementOf(adaptor.getInput()));
  auto scalar = mlir::RankedTensorType::get({}, elementType);
  results.append(
      {scalar, scalar, mlir::RankedTensorType::get(shapeOf(adaptor.getLabels()), elementType)});
  return success();
}

int64_t LinearCrossEntropyOp::getFlops() {
  return lossFlops(logitsShape(getInput(), getWeight(), getTransposeWeight()), 1);
}

// Of the loss, the first result, of all rows or of each.
template <typename Loss>
static LogicalResult buildLossVjp(Loss op, mlir::OpBuilder& builder,
                                  llvm::ArrayRef<Value> resultCotangents,
                                  llvm::ArrayRef<bool> needed,
                                  llvm::SmallVectorImpl<Value>& operandCotangents) {
  operandCotangents.assign(op->getNumOperands(), Value());
  if (resultCotangents.back()) {
    return op.emitOpError("can't be differentiated through its result 'logsumexp'");
  }
  const bool needsBias = op.getBias() && needed[3];
  if (!resultCotangents[0] || !(needed[0] || needed[1] || needsBias)) return success();
  llvm::SmallVector<Value, 1> bias;
  if (op.getBias()) bias.push_back(op.getBias());
  // The logits are computed again, which pays for all that is wanted of them.
  llvm::SmallVector<mlir::Type> types = {op.getInput().getType()};
  if (needed[1] || needsBias) {
    types.push_back(op.getWeight().getType());
    llvm::append_range(types, mlir::ValueRange(bias).getTypes());
  }
  auto grad = LinearCrossEntropyGradOp::create(
      builder, op.getLoc(), types, resultCotangents[0], op.getInput(), op.getWeight(),
      op.getLabels(), op.getLogsumexp(), bias, op.getTransposeWeight(), op.getIgnoreIndex());
  if (needed[0]) operandCotangents[0] = grad.getCotangents()[0];
  if (needed[1]) operandCotangents[1] = grad.getCotangents()[1];
  if (needsBias) operandCotangents[3] = grad.getCotangents()[2];
  return success();
}

LogicalResult LinearCrossEntropyOp::buildVjp(mlir::OpBuilder& builder,
                                             llvm::ArrayRef<Value> resultCotangents,
                                             llvm::ArrayRef<bool> needed,
                                             llvm::SmallVectorImpl<Value>& operandCotangents) {
  return buildLossVjp(*this, builder, resultCotangents, needed, operandCotangents);
}

LogicalResult LinearTokenLossesOp::inferReturnTypes(mlir::MLIRContext*, MaybeLocation location,
                                                    Adaptor adaptor,
                                                    llvm::SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, getOperationName());
  if (failed(checkLogits(context, adaptor.getInput(), adaptor.getWeight(), adaptor.getLabels(),
                         adaptor.getBias(), adaptor.getTransposeWeight()))) {
    return failure();
  }
  results.append(2, mlir::RankedTensorType::get(shapeOf(adaptor.getLabels()),
                                                wideType(elementOf(adaptor.getInput()))));
  return success();
}

int64_t LinearTokenLossesOp::getFlops() {
  return lossFlops(logitsShape(getInput(), getWeight(), getTransposeWeight()), 1);
}

LogicalResult LinearTokenLossesOp::buildVjp(mlir::OpBuilder& builder,
                                            llvm::ArrayRef<Value> resultCotangents,
                                            llvm::ArrayRef<bool> needed,
                                            llvm::SmallVectorImpl<Value>& operandCotangents) {
  return buildLossVjp(*this, builder, resultCotangents, needed, operandCotangents);
}

Value LinearLogsumexpOp::getBias() { return restOf(getRest()).bias; }
Value LinearLogsumexpOp::getFirst() { return restOf(getRest()).first; }

LogicalResult LinearLogsumexpOp::inferReturnTypes(mlir::MLIRContext*, MaybeLocation location,
                                                  Adaptor adaptor,
                                                  llvm::SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, getOperationName());
  if (failed(checkRest(context, adaptor.getRest()))) return failure();
  const Rest rest = restOf(adaptor.getRest());
  const int64_t blocks = adaptor.getBlocks();
  if (failed(checkLogits(context, adaptor.getInput(), adaptor.getWeight(), adaptor.getLabels(),
                         rest.bias, adaptor.getTransposeWeight())) ||
      failed(context.expectPiece(rest.first, "all_blocks", adaptor.getAllBlocks(), blocks))) {
    return failure();
  }
  const LogitsShape shape =
      logitsShape(adaptor.getInput(), adaptor.getWeight(), adaptor.getTransposeWeight());
  if (blocks <= 0 || shape.classes % blocks != 0) {
    return context.refuse("can't cut ", shape.classes, " classes into ", blocks, " equal blocks");
  }
  mlir::Type elementType = wideType(elementOf(adaptor.getInput()));
  llvm::SmallVector<int64_t> byBlock(shape.rows);
  byBlock.push_back(blocks);
  if (failed(context.addResult(byBlock, elementType, results))) return failure();
  return context.addResult(shape.rows, elementType, results);
}

int64_t LinearLogsumexpOp::getFlops() {
  return lossFlops(logitsShape(getInput(), getWeight(), getTransposeWeight()), 1);
}

Value LinearCrossEntropyGradOp::getBias() { return restOf(getRest()).bias; }
Value LinearCrossEntropyGradOp::getFirst() { return restOf(getRest()).first; }

LogicalResult LinearCrossEntropyGradOp::verify() {
  InferenceContext context(getLoc(), getOperationName());
  if (failed(checkRest(context, getRest())) ||
      failed(checkLogits(context, getInput(), getWeight(), getLabels(), getBias(),
                         getTransposeWeight()))) {
    return failure();
  }
  const LogitsShape shape = logitsShape(getInput(), getWeight(), getTransposeWeight());
  auto rows = mlir::RankedTensorType::get(shape.rows, wideType(elementOf(getInput())));
  const bool isOfAll = shapeOf(getCotangent()).empty();
  if (failed(context.expectType("a cotangent", getCotangent(),
                                isOfAll ? rows.clone(llvm::ArrayRef<int64_t>{}) : rows)) ||
      failed(context.expectType("a logsumexp", getLogsumexp(), rows)) ||
      failed(context.expectPiece(getFirst(), "classes", getClasses(), shape.classes))) {
    return failure();
  }
  llvm::SmallVector<mlir::Type> expected = {getInput().getType(), getWeight().getType()};
  if (getBias()) expected.push_back(getBias().getType());
  mlir::TypeRange actual(getCotangents().getTypes());
  const bool valid = (actual.size() == 1 || actual.size() == expected.size()) &&
                     actual.front() == expected.front() &&
                     areTypesOrWide(llvm::ArrayRef(expected).take_front(actual.size()), actual);
  if (valid) return success();
  return context.refuse(
      "expects a cotangent of the input and, unless of that alone, of the weight and the bias");
}

// Of the weight and the bias.
bool LinearCrossEntropyGradOp::givesWide(unsigned result) { return result > 0; }

int64_t LinearCrossEntropyGradOp::getFlops() {
  return lossFlops(logitsShape(getInput(), getWeight(), getTransposeWeight()),
                   getCotangents().size() > 1 ? 3 : 2);
}

}  // namespace oriel::ir
