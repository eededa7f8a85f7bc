#include "ir/oriel/vjp_util.h"

#include "ir/oriel/oriel.h"

using namespace mlir;

namespace oriel::ir {

Value scalarConstant(OpBuilder& builder, Location loc, double value, Value like, int64_t origin) {
  auto type = RankedTensorType::get({}, getElementTypeOrSelf(like.getType()));
  auto attribute =
      DenseElementsAttr::get(type, builder.getFloatAttr(type.getElementType(), value).getValue());
  return ConstantOp::create(builder, loc, attribute, origin);
}

Value sumToShape(OpBuilder& builder, Location loc, Value value, Type type) {
  auto from = cast<RankedTensorType>(value.getType());
  auto to = cast<RankedTensorType>(type);
  int64_t leading = from.getRank() - to.getRank();
  SmallVector<int64_t> repeated;
  for (int64_t dim = 0; dim < from.getRank(); ++dim) {
    if (dim < leading || (to.getDimSize(dim - leading) == 1 && from.getDimSize(dim) != 1)) {
      repeated.push_back(dim);
    }
  }
  if (!repeated.empty()) value = ReduceSumOp::create(builder, loc, value, repeated);
  return reshapeTo(builder, loc, value, type);
}

Value reshapeTo(OpBuilder& builder, Location loc, Value value, Type type) {
  if (value.getType() == type) return value;
  return ReshapeOp::create(builder, loc, type, value);
}

}  // namespace oriel::ir
