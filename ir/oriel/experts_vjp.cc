// Vector-Jacobian product of experts' layers.
#include "ir/oriel/inference.h"
#include "ir/oriel/oriel.h"

using namespace mlir;

namespace oriel::ir {

LogicalResult ExpertLinearOp::buildVjp(OpBuilder& builder, ArrayRef<Value> resultCotangents,
                                       ArrayRef<bool> needed,
                                       SmallVectorImpl<Value>& operandCotangents) {
  if (getFirst())
    return emitOpError("of a piece of the experts has no derivative: differentiate the whole");
  operandCotangents.assign(getNumOperands(), Value());
  Value g = resultCotangents[0];
  if (!g) return success();
  if (needed[0]) {
    Value rows = ExpertLinearOp::create(builder, getLoc(), g, getWeight(), getChoice(),
                                        /*first=*/Value(), !getTransposeWeight());
    if (rows.getType() != getInput().getType()) {
      // One row for all choices: the sum over them.
      const int64_t choices = static_cast<int64_t>(shapeOf(getChoice()).size()) - 1;
      rows = ReduceSumOp::create(builder, getLoc(), rows, ArrayRef<int64_t>{choices});
    }
    operandCotangents[0] = rows;
  }
  if (needed[1]) {
    operandCotangents[1] =
        ExpertLinearWeightGradOp::create(builder, getLoc(), getWeight().getType(), getInput(), g,
                                         getChoice(), /*first=*/Value(), getTransposeWeight());
  }
  return success();
}

}  // namespace oriel::ir
