// Vector-Jacobian products of attention and rotary embedding.
#include <limits>

#include "ir/oriel/inference.h"
#include "ir/oriel/oriel.h"
#include "ir/oriel/vjp_util.h"

using namespace mlir;

namespace oriel::ir {

namespace {

// Of the float mask of an attention: p ∘ (g vᵀ - Σ g ∘ y), with the probabilities p and the
// cotangent g of the result y, as the sums over what the mask is broadcast along. It is as large as
// the scores; without a mask that is learned, nothing is.
class MaskCotangent {
 public:
  MaskCotangent(OpBuilder& builder, AttentionOp op) : builder_(builder), op_(op) {}

  Value build(Value resultCotangent) {
    Value g = headsFirst(resultCotangent), value = perQueryHead(op_.getValue());
    Value p = probabilities();
    Value weighted = wide(create<MatmulOp>(g, value, false, true));
    Value products = create<MulOp>(wide(g), wide(headsFirst(op_.getResult())));
    Value kept = create<ReduceSumOp>(products, ArrayRef<int64_t>{3}, /*keep_dims=*/true);
    Value cotangent = create<MulOp>(p, create<SubOp>(weighted, kept));
    return cast(sumToShape(builder_, op_.getLoc(), cotangent, maskType()),
                maskType().getElementType());
  }

 private:
  template <typename OpT, typename... Args>
  Value create(Args&&... args) {
    return OpT::create(builder_, op_.getLoc(), std::forward<Args>(args)...)->getResult(0);
  }
  Value scalar(double value, Value like) {
    return scalarConstant(builder_, op_.getLoc(), value, like);
  }
  RankedTensorType maskType() { return tensorType(op_.getMask()); }

  Value cast(Value value, Type element) {
    RankedTensorType type = tensorType(value);
    return type.getElementType() == element ? value : create<CastOp>(type.clone(element), value);
  }
  // In the type of the statistics.
  Value wide(Value value) { return cast(value, op_.getLogsumexp().getType().getElementType()); }

  Value headsFirst(Value value) {
    return op_.getSequenceFirst() ? create<TransposeOp>(value, ArrayRef<int64_t>{0, 2, 1, 3})
                                  : value;
  }

  // Keys or values for each head of the queries.
  Value perQueryHead(Value value) {
    value = headsFirst(value);
    const int64_t heads = tensorType(op_.getLogsumexp()).getDimSize(1);
    RankedTensorType type = tensorType(value);
    SmallVector<int64_t> shape(type.getShape());
    if (shape[1] == heads) return value;
    SmallVector<int64_t> apart = {shape[0], shape[1], 1, shape[2], shape[3]};
    value = reshapeTo(builder_, op_.getLoc(), value, type.clone(apart));
    apart[2] = heads / shape[1];
    value = create<BroadcastOp>(type.clone(apart), value);
    shape[1] = heads;
    return reshapeTo(builder_, op_.getLoc(), value, type.clone(shape));
  }

  Value probabilities() {
    Value query = headsFirst(op_.getQuery()), key = perQueryHead(op_.getKey());
    Value scores = wide(create<MatmulOp>(query, key, false, true));
    scores = create<MulOp>(scores, scalar(op_.getScale(), scores));
    if (const double cap = op_.getSoftcap(); cap > 0) {
      Value bent = create<TanhOp>(create<MulOp>(scores, scalar(1 / cap, scores)));
      scores = create<MulOp>(bent, scalar(cap, scores));
    }
    scores = create<AddOp>(scores, wide(op_.getMask()));
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    Value isSeen = create<GreaterOp>(scores, scalar(-kInfinity, scores));
    if (Value inReach = keysInReach(scores)) isSeen = create<AndOp>(isSeen, inReach);
    RankedTensorType rows = tensorType(op_.getLogsumexp());
    SmallVector<int64_t> column(rows.getShape());
    column.push_back(1);
    Value sums = reshapeTo(builder_, op_.getLoc(), op_.getLogsumexp(), rows.clone(column));
    Value probabilities = create<ExpOp>(create<SubOp>(scores, sums));
    return create<SelectOp>(isSeen, probabilities, scalar(0, scores));
  }

  // Null if causality and window hide none.
  Value keysInReach(Value scores) {
    if (!op_.getCausal() && op_.getWindow() == 0) return {};
    ArrayRef<int64_t> shape = shapeOf(scores);
    auto index = RankedTensorType::get({shape[2], shape[3]}, builder_.getI64Type());
    // The last query is at the last key.
    Value distance = create<SubOp>(create<IotaOp>(index, 0), create<IotaOp>(index, 1));
    auto limit = [&](int64_t value) {
      return scalar(static_cast<double>(value - (shape[3] - shape[2])), distance);
    };
    Value inReach;
    if (op_.getCausal()) inReach = create<GreaterEqualOp>(distance, limit(0));
    if (op_.getWindow() > 0) {
      Value isNear = create<LessOp>(distance, limit(op_.getWindow()));
      inReach = inReach ? create<AndOp>(inReach, isNear) : isNear;
    }
    return inReach;
  }

  OpBuilder& builder_;
  AttentionOp op_;
};

// Of the sinks of an attention: -Σ exp(sink - logsumexp) Σ g ∘ y, over rows and columns, with the
// cotangent g of the result y: the derivative of a softmax for a score whose value is 0. A sink of
// -infinity has no share, also of a row that sees nothing else.
Value sinkCotangent(OpBuilder& builder, AttentionOp op, Value resultCotangent) {
  const Location loc = op.getLoc();
  auto wide = [&](Value value) -> Value {
    Type element = op.getLogsumexp().getType().getElementType();
    RankedTensorType type = tensorType(value);
    if (type.getElementType() == element) return value;
    return CastOp::create(builder, loc, type.clone(element), value);
  };
  Value products = MulOp::create(builder, loc, wide(resultCotangent), wide(op.getResult()));
  Value dots = ReduceSumOp::create(builder, loc, products, ArrayRef<int64_t>{3},
                                   /*keep_dims=*/false);  // [b, h, s] or [b, s, h]
  if (op.getSequenceFirst()) {
    dots = TransposeOp::create(builder, loc, dots, ArrayRef<int64_t>{0, 2, 1});
  }
  RankedTensorType sinkType = tensorType(op.getSink());
  Value sink = wide(op.getSink());
  sink = reshapeTo(builder, loc, sink, tensorType(sink).clone({sinkType.getDimSize(0), 1}));
  Value share = ExpOp::create(builder, loc, SubOp::create(builder, loc, sink, op.getLogsumexp()));
  auto scalar = [&](double value) { return scalarConstant(builder, loc, value, sink); };
  Value isThere =
      GreaterOp::create(builder, loc, sink, scalar(-std::numeric_limits<double>::infinity()));
  share = SelectOp::create(builder, loc, isThere, share, scalar(0));
  Value sum = ReduceSumOp::create(builder, loc, MulOp::create(builder, loc, share, dots),
                                  ArrayRef<int64_t>{0, 2}, /*keep_dims=*/false);
  Value cotangent = NegOp::create(builder, loc, sum);
  if (cotangent.getType() == sinkType) return cotangent;
  return CastOp::create(builder, loc, sinkType, cotangent);
}

}  // namespace

LogicalResult AttentionOp::buildVjp(OpBuilder& builder, ArrayRef<Value> resultCotangents,
                                    ArrayRef<bool> needed,
                                    SmallVectorImpl<Value>& operandCotangents) {
  operandCotangents.assign(getNumOperands(), Value());
  if (resultCotangents[1]) {
    return emitOpError("can't be differentiated through its result 'logsumexp'");
  }
  if (!resultCotangents[0] || !llvm::is_contained(needed, true)) return success();
  if (getMask() && needed[3]) {
    operandCotangents[3] = MaskCotangent(builder, *this).build(resultCotangents[0]);
  }
  if (getSink() && needed.back()) {
    operandCotangents.back() = sinkCotangent(builder, *this, resultCotangents[0]);
  }
  if (!llvm::is_contained(needed.take_front(3), true)) return success();
  auto grad = AttentionGradOp::create(builder, getLoc(), resultCotangents[0], getQuery(), getKey(),
                                      getValue(), getResult(), getLogsumexp(), getMask(), getSink(),
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
