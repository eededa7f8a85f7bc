// Vector-Jacobian products of attention and rotary embedding.
#include "ir/oriel/oriel.h"

using namespace mlir;

namespace oriel::ir {

LogicalResult AttentionOp::buildVjp(OpBuilder& builder, ArrayRef<Value> resultCotangents,
                                    ArrayRef<bool> needed,
                                    SmallVectorImpl<Value>& operandCotangents) {
  operandCotangents.assign(getNumOperands(), Value());
  if (resultCotangents[1]) {
    return emitOpError("can't be differentiated through its result 'logsumexp'");
  }
  if (getMask() && needed[3]) return emitOpError("has no cotangent for its operand 'mask'");
  if (!resultCotangents[0] || !llvm::is_contained(needed, true)) return success();
  auto grad = AttentionGradOp::create(builder, getLoc(), resultCotangents[0], getQuery(), getKey(),
                                      getValue(), getResult(), getLogsumexp(), getMask(),
                                      getScaleAttr(), getCausalAttr(), getWindowAttr(),
                                      getSoftcapAttr(), getSequenceFirstAttr());
  for (unsigned i = 0; i < 3; ++i) {
    if (needed[i]) operandCotangents[i] = grad->getResult(i);
  }
  return success();
}

LogicalResult RopeOp::buildVjp(OpBuilder& builder, ArrayRef<Value> resultCotangents,
                               ArrayRef<bool> needed, SmallVectorImpl<Value>& operandCotangents) {
  operandCotangents.assign(3, Value());
  if (needed[1] || needed[2]) {
    return emitOpError("has no cotangents for its operands 'cos' and 'sin'");
  }
  if (!needed[0] || !resultCotangents[0]) return success();
  operandCotangents[0] = RopeOp::create(builder, getLoc(), resultCotangents[0], getCos(), getSin(),
                                        !getInverse(), getInterleaved(), getRotaryDim());
  return success();
}

}  // namespace oriel::ir
