// Vector-Jacobian products of the loss.
#include "ir/oriel/oriel.h"

using namespace mlir;

namespace oriel::ir {

static LogicalResult throughLogsumexp(Operation* op) {
  return op->emitOpError("can't be differentiated through its result 'logsumexp'");
}

LogicalResult CrossEntropyOp::buildVjp(OpBuilder& builder, ArrayRef<Value> resultCotangents,
                                       ArrayRef<bool> needed,
                                       SmallVectorImpl<Value>& operandCotangents) {
  operandCotangents.assign(2, Value());
  if (resultCotangents[2]) return throughLogsumexp(*this);
  // `token_count` depends on the labels alone: its cotangent reaches nothing.
  if (!needed[0] || !resultCotangents[0]) return success();
  operandCotangents[0] =
      CrossEntropyGradOp::create(builder, getLoc(), resultCotangents[0], getLogits(), getLabels(),
                                 getLogsumexp(), getIgnoreIndex(), /*first=*/Value());
  return success();
}

LogicalResult TokenLossesOp::buildVjp(OpBuilder& builder, ArrayRef<Value> resultCotangents,
                                      ArrayRef<bool> needed,
                                      SmallVectorImpl<Value>& operandCotangents) {
  operandCotangents.assign(2, Value());
  if (resultCotangents[1]) return throughLogsumexp(*this);
  if (!needed[0] || !resultCotangents[0]) return success();
  operandCotangents[0] =
      CrossEntropyGradOp::create(builder, getLoc(), resultCotangents[0], getLogits(), getLabels(),
                                 getLogsumexp(), getIgnoreIndex(), /*first=*/Value());
  return success();
}

}  // namespace oriel::ir
