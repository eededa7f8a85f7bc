// Vector-Jacobian products of the normalisations and of softmax.
#include "ir/oriel/oriel.h"

using namespace mlir;

namespace oriel::ir {
namespace {

// The statistics are results only for the backward's sake.
LogicalResult checkStatisticsUnused(Operation* op, ArrayRef<Value> resultCotangents) {
  for (size_t i = 1; i < resultCotangents.size(); ++i) {
    if (resultCotangents[i]) {
      return op->emitOpError("can't be differentiated through its result ") << i;
    }
  }
  return success();
}

}  // namespace

LogicalResult LayerNormOp::buildVjp(OpBuilder& builder, ArrayRef<Value> resultCotangents,
                                    ArrayRef<bool> needed,
                                    SmallVectorImpl<Value>& operandCotangents) {
  operandCotangents.assign(getNumOperands(), Value());
  if (failed(checkStatisticsUnused(*this, resultCotangents))) return failure();
  if (!resultCotangents[0] || !llvm::is_contained(needed, true)) return success();
  auto grad = LayerNormGradOp::create(builder, getLoc(), resultCotangents[0], getInput(),
                                      getWeight(), getMean(), getInvStd());
  for (unsigned i = 0; i < getNumOperands(); ++i) {
    if (needed[i]) operandCotangents[i] = grad->getResult(i);
  }
  return success();
}

LogicalResult RmsNormOp::buildVjp(OpBuilder& builder, ArrayRef<Value> resultCotangents,
                                  ArrayRef<bool> needed,
                                  SmallVectorImpl<Value>& operandCotangents) {
  operandCotangents.assign(2, Value());
  if (failed(checkStatisticsUnused(*this, resultCotangents))) return failure();
  if (!resultCotangents[0] || !llvm::is_contained(needed, true)) return success();
  auto grad = RmsNormGradOp::create(builder, getLoc(), resultCotangents[0], getInput(), getWeight(),
                                    getInvRms(), getWeightOffsetAttr());
  for (unsigned i = 0; i < 2; ++i) {
    if (needed[i]) operandCotangents[i] = grad->getResult(i);
  }
  return success();
}

LogicalResult SoftmaxOp::buildVjp(OpBuilder& builder, ArrayRef<Value> resultCotangents,
                                  ArrayRef<bool> needed,
                                  SmallVectorImpl<Value>& operandCotangents) {
  operandCotangents.assign(1, Value());
  if (!needed[0] || !resultCotangents[0]) return success();
  operandCotangents[0] =
      SoftmaxGradOp::create(builder, getLoc(), resultCotangents[0], getResult(), getDim());
  return success();
}

}  // namespace oriel::ir
