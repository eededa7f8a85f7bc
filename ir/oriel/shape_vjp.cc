// Vector-Jacobian products of the ops that move, repeat or add up elements.
#include "ir/interfaces/tensor_type.h"
#include "ir/oriel/builders.h"
#include "ir/oriel/oriel.h"

using namespace mlir;

namespace oriel::ir {
namespace {

// Most ops here have one operand that can get a cotangent and one result: `build` makes the
// former from the latter.
LogicalResult singleVjp(Operation* op, ArrayRef<Value> resultCotangents, ArrayRef<bool> needed,
                        SmallVectorImpl<Value>& operandCotangents,
                        llvm::function_ref<Value(Value)> build) {
  operandCotangents.assign(op->getNumOperands(), Value());
  if (needed[0] && resultCotangents[0]) operandCotangents[0] = build(resultCotangents[0]);
  return success();
}

LogicalResult refusePiece(Operation* op) {
  return op->emitOpError("of a piece of the rows has no derivative: differentiate the whole");
}

// The reduced tensor's type with the reduced dimensions kept at size 1.
RankedTensorType keptType(Value input, ArrayRef<int64_t> dims) {
  auto type = tensorType(input);
  SmallVector<int64_t> shape(type.getShape());
  for (int64_t dim : dims) shape[dim] = 1;
  return RankedTensorType::get(shape, type.getElementType());
}

// Reduction to one of the input's elements: the cotangent goes to the elements that equal
// the result, in equal parts.
template <typename OpT>
Value shareAmongEqual(OpBuilder& builder, OpT op, Value g) {
  Location loc = op.getLoc();
  RankedTensorType kept = keptType(op.getInput(), op.getDims());
  Value result = reshapeTo(builder, loc, op.getResult(), kept);
  Value equal = EqualOp::create(builder, loc, op.getInput(), result);
  Value ones = CastOp::create(builder, loc, op.getInput().getType(), equal);
  Value count = ReduceSumOp::create(builder, loc, ones, op.getDims(), /*keep_dims=*/true);
  Value share = DivOp::create(builder, loc, reshapeTo(builder, loc, g, kept), count);
  return MulOp::create(builder, loc, ones, share);
}

// The same for the first of the elements along the one dimension that is reduced.
Value giveToFirst(OpBuilder& builder, ReduceMaxOp op, Value g) {
  Location loc = op.getLoc();
  const int64_t dim = op.getDims().front();
  auto type = tensorType(op.getInput());
  Value first = ArgmaxOp::create(builder, loc, op.getInput(), dim, /*keep_dims=*/true);
  SmallVector<int64_t> row(type.getRank(), 1);
  row[dim] = type.getDimSize(dim);
  Value index = IotaOp::create(builder, loc, RankedTensorType::get(row, builder.getI64Type()), dim);
  Value isFirst = EqualOp::create(builder, loc, index, first);
  Value kept = reshapeTo(builder, loc, g, keptType(op.getInput(), op.getDims()));
  return SelectOp::create(builder, loc, isFirst, kept, scalarConstant(builder, loc, 0, g));
}

}  // namespace

LogicalResult ReshapeOp::buildVjp(OpBuilder& builder, ArrayRef<Value> resultCotangents,
                                  ArrayRef<bool> needed,
                                  SmallVectorImpl<Value>& operandCotangents) {
  return singleVjp(*this, resultCotangents, needed, operandCotangents,
                   [&](Value g) { return reshapeTo(builder, getLoc(), g, getInput().getType()); });
}

LogicalResult TransposeOp::buildVjp(OpBuilder& builder, ArrayRef<Value> resultCotangents,
                                    ArrayRef<bool> needed,
                                    SmallVectorImpl<Value>& operandCotangents) {
  return singleVjp(*this, resultCotangents, needed, operandCotangents, [&](Value g) -> Value {
    SmallVector<int64_t> inverse(getPermutation().size());
    for (auto [to, from] : llvm::enumerate(getPermutation())) inverse[from] = to;
    return TransposeOp::create(builder, getLoc(), g, inverse);
  });
}

LogicalResult BroadcastOp::buildVjp(OpBuilder& builder, ArrayRef<Value> resultCotangents,
                                    ArrayRef<bool> needed,
                                    SmallVectorImpl<Value>& operandCotangents) {
  return singleVjp(*this, resultCotangents, needed, operandCotangents,
                   [&](Value g) { return sumToShape(builder, getLoc(), g, getInput().getType()); });
}

LogicalResult SliceOp::buildVjp(OpBuilder& builder, ArrayRef<Value> resultCotangents,
                                ArrayRef<bool> needed, SmallVectorImpl<Value>& operandCotangents) {
  return singleVjp(*this, resultCotangents, needed, operandCotangents, [&](Value g) -> Value {
    auto from = tensorType(getInput());
    auto to = tensorType(g);
    if (to.getNumElements() == 0) return Value();
    SmallVector<int64_t> high, interior;
    for (auto [dim, start, stride] : llvm::enumerate(getStarts(), getStrides())) {
      int64_t covered = (to.getDimSize(dim) - 1) * stride + 1;
      high.push_back(from.getDimSize(dim) - start - covered);
      interior.push_back(stride - 1);
    }
    return PadOp::create(builder, getLoc(), g, getStarts(), high, interior);
  });
}

LogicalResult PadOp::buildVjp(OpBuilder& builder, ArrayRef<Value> resultCotangents,
                              ArrayRef<bool> needed, SmallVectorImpl<Value>& operandCotangents) {
  return singleVjp(*this, resultCotangents, needed, operandCotangents, [&](Value g) -> Value {
    auto from = tensorType(getInput());
    if (from.getNumElements() == 0) return Value();
    SmallVector<int64_t> limits, strides;
    for (auto [dim, low, interior] : llvm::enumerate(getLow(), getInterior())) {
      strides.push_back(interior + 1);
      limits.push_back(low + (from.getDimSize(dim) - 1) * (interior + 1) + 1);
    }
    return SliceOp::create(builder, getLoc(), g, getLow(), limits, strides);
  });
}

LogicalResult ConcatOp::buildVjp(OpBuilder& builder, ArrayRef<Value> resultCotangents,
                                 ArrayRef<bool> needed, SmallVectorImpl<Value>& operandCotangents) {
  operandCotangents.assign(getNumOperands(), Value());
  Value g = resultCotangents[0];
  if (!g) return success();
  int64_t dim = getDim(), start = 0;
  for (auto [i, input] : llvm::enumerate(getInputs())) {
    const int64_t size = tensorType(input).getDimSize(dim);
    if (needed[i]) operandCotangents[i] = sliceDim(builder, getLoc(), g, dim, start, size);
    start += size;
  }
  return success();
}

LogicalResult GatherOp::buildVjp(OpBuilder& builder, ArrayRef<Value> resultCotangents,
                                 ArrayRef<bool> needed, SmallVectorImpl<Value>& operandCotangents) {
  if (getFirst()) return refusePiece(*this);
  return singleVjp(*this, resultCotangents, needed, operandCotangents, [&](Value g) -> Value {
    return ScatterAddOp::create(builder, getLoc(), getInput().getType(), getIndices(), g, getDim(),
                                /*first=*/Value(), /*rows=*/0, getBatchDims());
  });
}

LogicalResult ScatterAddOp::buildVjp(OpBuilder& builder, ArrayRef<Value> resultCotangents,
                                     ArrayRef<bool> needed,
                                     SmallVectorImpl<Value>& operandCotangents) {
  if (getFirst()) return refusePiece(*this);
  operandCotangents.assign(2, Value());
  if (Value g = resultCotangents[0]; g && needed[1]) {
    operandCotangents[1] =
        GatherOp::create(builder, getLoc(), g, getIndices(), getDim(), /*first=*/Value(),
                         /*rows=*/0, getBatchDims());
  }
  return success();
}

LogicalResult ReduceSumOp::buildVjp(OpBuilder& builder, ArrayRef<Value> resultCotangents,
                                    ArrayRef<bool> needed,
                                    SmallVectorImpl<Value>& operandCotangents) {
  return singleVjp(*this, resultCotangents, needed, operandCotangents, [&](Value g) -> Value {
    Value kept = reshapeTo(builder, getLoc(), g, keptType(getInput(), getDims()));
    if (kept.getType() == getInput().getType()) return kept;
    return BroadcastOp::create(builder, getLoc(), getInput().getType(), kept);
  });
}

LogicalResult ReduceMeanOp::buildVjp(OpBuilder& builder, ArrayRef<Value> resultCotangents,
                                     ArrayRef<bool> needed,
                                     SmallVectorImpl<Value>& operandCotangents) {
  return singleVjp(*this, resultCotangents, needed, operandCotangents, [&](Value g) -> Value {
    auto type = tensorType(getInput());
    double count = 1;
    for (int64_t dim : getDims()) count *= static_cast<double>(type.getDimSize(dim));
    // Scaled before it is repeated: the smaller tensor.
    Value share =
        MulOp::create(builder, getLoc(), g, scalarConstant(builder, getLoc(), 1.0 / count, g));
    share = reshapeTo(builder, getLoc(), share, keptType(getInput(), getDims()));
    if (share.getType() == type) return share;
    return BroadcastOp::create(builder, getLoc(), type, share);
  });
}

LogicalResult ReduceMaxOp::buildVjp(OpBuilder& builder, ArrayRef<Value> resultCotangents,
                                    ArrayRef<bool> needed,
                                    SmallVectorImpl<Value>& operandCotangents) {
  return singleVjp(*this, resultCotangents, needed, operandCotangents, [&](Value g) {
    return (*this)->hasAttr(kFirstOfEqualAttr) ? giveToFirst(builder, *this, g)
                                               : shareAmongEqual(builder, *this, g);
  });
}

LogicalResult ReduceMinOp::buildVjp(OpBuilder& builder, ArrayRef<Value> resultCotangents,
                                    ArrayRef<bool> needed,
                                    SmallVectorImpl<Value>& operandCotangents) {
  return singleVjp(*this, resultCotangents, needed, operandCotangents,
                   [&](Value g) { return shareAmongEqual(builder, *this, g); });
}

// The product of the other elements: the whole product over the element, or, for an element that is
// the only zero, the product of the rest.
LogicalResult ReduceProdOp::buildVjp(OpBuilder& builder, ArrayRef<Value> resultCotangents,
                                     ArrayRef<bool> needed,
                                     SmallVectorImpl<Value>& operandCotangents) {
  return singleVjp(*this, resultCotangents, needed, operandCotangents, [&](Value g) -> Value {
    Location loc = getLoc();
    Value x = getInput();
    Value zero = scalarConstant(builder, loc, 0, x), one = scalarConstant(builder, loc, 1, x);
    Value isZero = EqualOp::create(builder, loc, x, zero);
    Value zeros = ReduceSumOp::create(
        builder, loc, CastOp::create(builder, loc, x.getType(), isZero), getDims(), true);
    Value filled = SelectOp::create(builder, loc, isZero, one, x);
    Value rest = ReduceProdOp::create(builder, loc, filled, getDims(), /*keepDims=*/true);
    // Of a row: no zero leaves every element a share, one zero leaves itself the whole.
    Value share = DivOp::create(builder, loc, rest, filled);
    Value isWhole = EqualOp::create(builder, loc, zeros, zero);
    Value isOnly = AndOp::create(builder, loc, isZero, EqualOp::create(builder, loc, zeros, one));
    Value others = SelectOp::create(builder, loc, isOnly, rest,
                                    SelectOp::create(builder, loc, isWhole, share, zero));
    return MulOp::create(builder, loc, others, reshapeTo(builder, loc, g, keptType(x, getDims())));
  });
}

LogicalResult CumsumOp::buildVjp(OpBuilder& builder, ArrayRef<Value> resultCotangents,
                                 ArrayRef<bool> needed, SmallVectorImpl<Value>& operandCotangents) {
  return singleVjp(*this, resultCotangents, needed, operandCotangents, [&](Value g) -> Value {
    return CumsumOp::create(builder, getLoc(), g, getDim(), getExclusive(), !getReverse());
  });
}

}  // namespace oriel::ir
