// Vector-Jacobian products of the merges of image features.
#include "ir/oriel/oriel.h"

using namespace mlir;

namespace oriel::ir {

LogicalResult MaskedScatterOp::buildVjp(OpBuilder& builder, ArrayRef<Value> resultCotangents,
                                        ArrayRef<bool> needed,
                                        SmallVectorImpl<Value>& operandCotangents) {
  operandCotangents.assign(3, Value());
  if (!resultCotangents[0] || (!needed[0] && !needed[2])) return success();
  auto grad = MaskedScatterGradOp::create(builder, getLoc(), getInput().getType(),
                                          getSource().getType(), resultCotangents[0], getMask());
  if (needed[0]) operandCotangents[0] = grad.getInputGrad();
  if (needed[2]) operandCotangents[2] = grad.getSourceGrad();
  return success();
}

LogicalResult MergeFeaturesOp::buildVjp(OpBuilder& builder, ArrayRef<Value> resultCotangents,
                                        ArrayRef<bool> needed,
                                        SmallVectorImpl<Value>& operandCotangents) {
  operandCotangents.assign(3, Value());
  if (!resultCotangents[0] || (!needed[0] && !needed[2])) return success();
  auto grad = MergeFeaturesGradOp::create(builder, getLoc(), getInput().getType(),
                                          getFeatures().getType(), resultCotangents[0], getMask());
  if (needed[0]) operandCotangents[0] = grad.getInputGrad();
  if (needed[2]) operandCotangents[2] = grad.getFeaturesGrad();
  return success();
}

}  // namespace oriel::ir
