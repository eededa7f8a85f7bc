// Vector-Jacobian products of attention and rotary embedding.
#include <limits>

#include "ir/oriel/builders.h"
#include "ir/oriel/inference.h"
#include "ir/oriel/oriel.h"

using namespace mlir;

namespace oriel::ir {

namespace {

// Cotangents of what an attention has besides query, key and value, from the cotangent g of its
// result y and its probabilities p.
class ScoreCotangents {
 public:
  ScoreCotangents(OpBuilder& builder, AttentionOp op, Value resultCotangent)
      : builder_(builder), op_(op), g_(resultCotangent) {}

  // Of a float mask: p ∘ (g vᵀ - Σ g ∘ y), as the sums over what it is broadcast along. That is as
  // large as the scores; without a mask that is learned, nothing is.
  Value ofMask() {
    Value value = perQueryHead(op_.getValue()), p = probabilities();
    Value weighted = wide(create<MatmulOp>(headsFirst(g_), value, false, true));
    Value cotangent = create<MulOp>(p, create<SubOp>(weighted, column(rowProducts())));
    return cast(sumToShape(builder_, op_.getLoc(), cotangent, maskType()),
                maskType().getElementType());
  }

  // Of the sinks: -Σ exp(sink - logsumexp) Σ g ∘ y over rows, for a sink's value is 0. A sink of
  // -infinity has no share, also of a row that sees nothing else.
  Value ofSink() {
    const int64_t heads = tensorType(op_.getSink()).getDimSize(0);
    Value sink = wide(op_.getSink());
    sink = reshapeTo(builder_, op_.getLoc(), sink, tensorType(sink).clone({heads, 1}));
    Value share = create<ExpOp>(create<SubOp>(sink, op_.getLogsumexp()));
    Value isThere = create<GreaterOp>(sink, scalar(-kInfinity, sink));
    share = create<SelectOp>(isThere, share, scalar(0, share));
    Value sum = create<ReduceSumOp>(create<MulOp>(share, rowProducts()), ArrayRef<int64_t>{0, 2},
                                    /*keep_dims=*/false);
    return cast(create<NegOp>(sum), tensorType(op_.getSink()).getElementType());
  }

 private:
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();

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

  // Σ g ∘ y, [b, h, s].
  Value rowProducts() {
    Value products = create<MulOp>(wide(g_), wide(op_.getResult()));
    Value sums = create<ReduceSumOp>(products, ArrayRef<int64_t>{3}, /*keep_dims=*/false);
    if (!op_.getSequenceFirst()) return sums;
    return create<TransposeOp>(sums, ArrayRef<int64_t>{0, 2, 1});
  }
  // Of rows [b, h, s] for all keys, [b, h, s, 1].
  Value column(Value rows) {
    RankedTensorType type = tensorType(rows);
    SmallVector<int64_t> shape(type.getShape());
    shape.push_back(1);
    return reshapeTo(builder_, op_.getLoc(), rows, type.clone(shape));
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
    Value isSeen = create<GreaterOp>(scores, scalar(-kInfinity, scores));
    if (Value inReach = keysInReach(scores)) isSeen = create<AndOp>(isSeen, inReach);
    Value probabilities = create<ExpOp>(create<SubOp>(scores, column(op_.getLogsumexp())));
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
  Value g_;
};

}  // namespace

LogicalResult AttentionOp::buildVjp(OpBuilder& builder, ArrayRef<Value> resultCotangents,
                                    ArrayRef<bool> needed,
                                    SmallVectorImpl<Value>& operandCotangents) {
  operandCotangents.assign(getNumOperands(), Value());
  if (resultCotangents[1]) {
    return emitOpError("can't be differentiated through its result 'logsumexp'");
  }
  if (!resultCotangents[0] || !llvm::is_contained(needed, true)) return success();
  ScoreCotangents ofScores(builder, *this, resultCotangents[0]);
  if (getMask() && needed[3]) operandCotangents[3] = ofScores.ofMask();
  if (getSink() && needed.back()) operandCotangents.back() = ofScores.ofSink();
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
