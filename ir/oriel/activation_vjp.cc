// Vector-Jacobian products of the activations.
#include "ir/oriel/oriel.h"

using namespace mlir;

namespace oriel::ir {

LogicalResult ActivationOp::buildVjp(OpBuilder& builder, ArrayRef<Value> resultCotangents,
                                     ArrayRef<bool> needed,
                                     SmallVectorImpl<Value>& operandCotangents) {
  operandCotangents.assign(1, Value());
  if (!needed[0] || !resultCotangents[0]) return success();
  operandCotangents[0] =
      ActivationGradOp::create(builder, getLoc(), resultCotangents[0], getInput(), getKind());
  return success();
}

LogicalResult GatedActivationOp::buildVjp(OpBuilder& builder, ArrayRef<Value> resultCotangents,
                                          ArrayRef<bool> needed,
                                          SmallVectorImpl<Value>& operandCotangents) {
  operandCotangents.assign(2, Value());
  if (!resultCotangents[0] || (!needed[0] && !needed[1])) return success();
  auto grad = GatedActivationGradOp::create(builder, getLoc(), resultCotangents[0], getGate(),
                                            getUp(), getKind());
  if (needed[0]) operandCotangents[0] = grad.getGateGrad();
  if (needed[1]) operandCotangents[1] = grad.getUpGrad();
  return success();
}

}  // namespace oriel::ir
