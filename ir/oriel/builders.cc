#include "ir/oriel/builders.h"

#include "ir/interfaces/tensor_type.h"
#include "ir/oriel/oriel.h"

using namespace mlir;

namespace oriel::ir {

Value scalarConstant(OpBuilder& builder, Location loc, double value, Value like, int64_t origin) {
  auto type = RankedTensorType::get({}, getElementTypeOrSelf(like.getType()));
  const Type element = type.getElementType();
  Attribute attribute =
      element.isInteger() ? Attribute(builder.getIntegerAttr(element, static_cast<int64_t>(value)))
                          : Attribute(builder.getFloatAttr(element, value));
  return ConstantOp::create(builder, loc, DenseElementsAttr::get(type, attribute), origin);
}

Value sumToShape(OpBuilder& builder, Location loc, Value value, Type type) {
  auto from = tensorType(value);
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

Value sliceDim(OpBuilder& builder, Location loc, Value value, int64_t dim, int64_t start,
               int64_t size, bool folds) {
  llvm::SmallVector<int64_t> limits(shapeOf(value));
  if (limits[dim] == size) return value;
  llvm::SmallVector<int64_t> starts(limits.size(), 0), strides(limits.size(), 1);
  starts[dim] = start;
  limits[dim] = start + size;
  if (folds) return builder.createOrFold<SliceOp>(loc, value, starts, limits, strides);
  return SliceOp::create(builder, loc, value, starts, limits, strides);
}

}  // namespace oriel::ir
