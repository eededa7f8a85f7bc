#include "passes/raise/attention_mask.h"
#include "passes/raise/attention_operands.h"
#include "passes/raise/attention_scores.h"
#include "passes/raise/attention_sink.h"
#include "passes/raise/key_columns.h"
#include "passes/raise/match.h"
#include "passes/raise/merged_dims.h"
#include "passes/raise/passes.h"
#include "passes/raise/score_order.h"

namespace oriel {

#define GEN_PASS_DEF_RAISEATTENTION
#include "passes/raise/passes.h.inc"

namespace {

using mlir::LogicalResult;
using mlir::PatternRewriter;
using mlir::success;
using mlir::Value;

// Gives an operand of rank 2 to 5 the shape [b, h, s, d]: of rank 3 it is [b * h, s, d], of rank 5
// [b, g, h / g, s, d].
bool toRank4(AttentionOperand& operand, llvm::ArrayRef<int64_t> heads) {
  llvm::ArrayRef<int64_t> shape = operand.shape;
  llvm::SmallVector<int64_t> result;
  if (shape.size() == 2) {
    result = {1, 1};
  } else if (shape.size() == 3) {
    result = {shape[0], 1};
    if (!heads.empty()) {
      if (shape[0] != heads[0] * heads[1]) return false;
      result = {heads[0], heads[1]};
    }
  } else if (shape.size() == 4) {
    result = {shape[0], shape[1]};
  } else if (shape.size() == 5) {
    result = {shape[0], shape[1] * shape[2]};
  } else {
    return false;
  }
  llvm::append_range(result, shape.take_back(2));
  operand.shape = result;
  return true;
}

// What is added to the scores of queries of this shape [b, h, s, d], if it is learned and may be
// columns of theirs instead.
std::optional<KeyColumns> matchColumns(Value added, llvm::ArrayRef<int64_t> queries, int64_t keys,
                                       double softcap, double scale) {
  const bool scales = std::abs(scale) > 1e-6;  // biases are divided by it
  if (softcap != 0 || !scales || !dependsOnParameter(added)) return std::nullopt;
  std::optional<KeyColumns> columns = KeyColumns::match(added, keys);
  const bool fits = columns && columns->isOf(ir::elementCount(queries.drop_back())) &&
                    queries.back() + columns->count() <= kMaxColumns;
  return fits ? columns : std::nullopt;
}

// Of values [b, g, t, e] the means [b, h, 1, e].
Value meanOfKeys(PatternRewriter& rewriter, mlir::Location loc, Value values, int64_t heads) {
  Value mean = ir::ReduceMeanOp::create(rewriter, loc, values, llvm::ArrayRef<int64_t>{2},
                                        /*keep_dims=*/true);
  mlir::RankedTensorType type = tensorType(mean);
  const int64_t batch = type.getDimSize(0), groups = type.getDimSize(1), size = type.getDimSize(3);
  if (groups == heads) return mean;
  mean = ir::ReshapeOp::create(rewriter, loc, type.clone({batch, groups, 1, size}), mean);
  mean = ir::BroadcastOp::create(rewriter, loc, type.clone({batch, groups, heads / groups, size}),
                                 mean);
  return ir::ReshapeOp::create(rewriter, loc, type.clone({batch, heads, 1, size}), mean);
}

// [b, h, s, d] → [b, h s, d], times one matrix of each batch, [b, h s, t] → [b, h, s, t] becomes
// the product of all heads' rows.
struct RowsOfHeads : mlir::OpRewritePattern<ir::ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::ReshapeOp op, PatternRewriter& rewriter) const override {
    ir::MatmulOp product = matchProduct(op.getInput());
    auto merge = product ? product.getLhs().getDefiningOp<ir::ReshapeOp>() : ir::ReshapeOp();
    if (!merge || product.getTransposeLhs() || !product->hasOneUse() ||
        rankOf(product.getRhs()) != 3) {
      return rewriter.notifyMatchFailure(op, "no product of merged rows");
    }
    llvm::ArrayRef<int64_t> from = shapeOf(merge.getInput());
    llvm::ArrayRef<int64_t> merged = merge.getType().getShape(), to = op.getType().getShape();
    if (from.size() != 4 || to.size() != 4 || merged.size() != 3 || from[0] != merged[0] ||
        from[3] != merged[2] || from.take_front(3) != to.take_front(3)) {
      return rewriter.notifyMatchFailure(op, "rows are not split as they were merged");
    }
    rewriter.replaceOpWithNewOp<ir::MatmulOp>(op, merge.getInput(), product.getRhs(),
                                              /*transpose_lhs=*/false, product.getTransposeRhs(),
                                              /*row_dims=*/2, /*sum_dims=*/1, /*column_dims=*/1);
    return success();
  }
};

// v pᵀ → transpose(p vᵀ), for probabilities p: values times keys, as vmap has them.
struct ProbabilitiesFirst : mlir::OpRewritePattern<ir::MatmulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::MatmulOp op, PatternRewriter& rewriter) const override {
    auto isOfSoftmax = [](Value value) {
      value = withoutSplit(value);
      return matchSoftmax(value) || matchShownSoftmax(value) || SunkSoftmax::match(value);
    };
    if (!matchProduct(op) || !op.getTransposeRhs() || !isOfSoftmax(op.getRhs()) ||
        isOfSoftmax(op.getLhs())) {
      return rewriter.notifyMatchFailure(op, "no values times probabilities");
    }
    Value product = ir::MatmulOp::create(rewriter, op.getLoc(), op.getRhs(), op.getLhs(),
                                         /*transpose_lhs=*/false, !op.getTransposeLhs(),
                                         /*row_dims=*/1, /*sum_dims=*/1, /*column_dims=*/1);
    rewriter.replaceOp(op, transposeLastTwo(rewriter, op.getLoc(), product));
    return success();
  }
};

// What attention takes, [b, h, s, e]; keys and values may have fewer heads.
struct Operands {
  AttentionOperand query, key, value;
};

// Those of the product of probabilities and values; none, and why, where attention can't take them.
std::optional<Operands> operandsOf(ir::MatmulOp op, Scores& scores, const char*& why) {
  ir::MatmulOp product = scores.product;
  AttentionOperand query(product.getLhs()), key = keysOrValues(product), value = keysOrValues(op);
  bool queryIsTransposed = product.getTransposeLhs(), keyIsTransposed = !product.getTransposeRhs();
  if (scores.transposed) {
    why = "keys of all heads";
    if (hasSharedMatrix(product)) return std::nullopt;
    std::swap(query, key);
    std::swap(queryIsTransposed, keyIsTransposed);
  }
  // Their transpose may be one with that of the heads: [b, t, h, d] → [b, h, d, t].
  if (query.transposed != queryIsTransposed) query.swapLastTwo();
  if (key.transposed != keyIsTransposed) key.swapLastTwo();
  if (value.transposed != op.getTransposeRhs()) value.swapLastTwo();
  why = "the value is scaled";
  if (value.scale != 1.0) return std::nullopt;
  // Scores may have them merged where what they are multiplied with does not.
  if (scores.heads.empty()) scores.addHeads(op.getType().getShape());
  llvm::ArrayRef<int64_t> heads = scores.heads;
  why = "operands of other ranks";
  if (!toRank4(query, heads) || !toRank4(key, heads) || !toRank4(value, heads)) return std::nullopt;
  AttentionOperand keyHeads = key.withoutRepeatedHeads();
  AttentionOperand valueHeads = value.withoutRepeatedHeads();
  if (keyHeads.shape[1] == valueHeads.shape[1]) {
    key = keyHeads;
    value = valueHeads;
  }
  // A product may repeat operands over the batch or the heads; attention does not.
  why = "operands differ in batch or heads";
  if (query.shape[0] != key.shape[0] || query.shape[0] != value.shape[0] || key.shape[1] == 0 ||
      query.shape[1] % key.shape[1] != 0 || key.shape[1] != value.shape[1]) {
    return std::nullopt;
  }
  return Operands{query, key, value};
}

// Gives the mask what is added to scores, and what stands for them, but for what columns behind the
// queries' and keys' own can be: those are returned.
std::vector<KeyColumns> takeTerms(const Scores& scores, const Operands& operands, double scale,
                                  AttentionMask& mask) {
  std::vector<KeyColumns> columns;
  llvm::SmallVector<int64_t> wider = operands.query.shape;
  for (const Scores::Added& term : scores.added) {
    auto added = term.factor == 1
                     ? matchColumns(term.value, wider, operands.key.shape[2], scores.softcap, scale)
                     : std::nullopt;
    if (added) {
      columns.push_back(*added);
      wider.back() += added->count();
    } else {
      mask.add(term.value, term.rank, term.factor);
    }
  }
  for (const Scores::Replaced& term : scores.replaced) {
    mask.hide(term.choice, term.low, term.rank, term.last);
  }
  return columns;
}

// softmax(scores) v → attention.
struct RaiseProbabilitiesTimesValue : mlir::OpRewritePattern<ir::MatmulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::MatmulOp op, PatternRewriter& rewriter) const override {
    mlir::RankedTensorType type = op.getType();
    if (type.getRank() > 5 || op.getTransposeLhs() || !matchSide(op)) {
      return rewriter.notifyMatchFailure(op, "no [b, h, s, e] product");
    }
    Value probabilities = withoutSplit(op.getLhs());
    const std::optional<SunkSoftmax> sunk = SunkSoftmax::match(probabilities);
    ir::SoftmaxOp softmax = sunk ? ir::SoftmaxOp() : matchSoftmax(probabilities);
    auto shown = sunk || softmax ? std::nullopt : matchShownSoftmax(probabilities);
    if (shown) softmax = shown->first;
    if (!sunk &&
        (!softmax || static_cast<int64_t>(softmax.getDim()) != softmax.getType().getRank() - 1)) {
      return rewriter.notifyMatchFailure(op,
                                         "the left operand is no softmax over its last dimension");
    }
    std::optional<Scores> scores = matchScores(sunk ? sunk->scores() : Value(softmax.getInput()));
    if (!scores) return rewriter.notifyMatchFailure(op, "scores are no masked product");
    if (shown && !scores->hideAgain(shown->second, softmax.getType().getRank())) {
      return rewriter.notifyMatchFailure(op, "a mask hides other probabilities than scores");
    }
    const char* why = nullptr;
    std::optional<Operands> operands = operandsOf(op, *scores, why);
    if (!operands) return rewriter.notifyMatchFailure(op, why);
    const AttentionOperand &query = operands->query, &key = operands->key;
    const double scale = scores->scale * query.scale * key.scale;
    AttentionMask mask(query.shape[0], query.shape[1], query.shape[2], key.shape[2]);
    if (sunk) mask.sink();
    const std::vector<KeyColumns> columns = takeTerms(*scores, *operands, scale, mask);
    if (!mask.resolve()) return rewriter.notifyMatchFailure(op, "attention can't take the mask");

    mlir::Location loc = op.getLoc();
    Value maskValue = mask.make(rewriter, loc, type.getElementType());
    Value queries = query.materialize(rewriter, loc);
    for (const Scores::Factor& factor : scores->factors) {
      queries = factor.divides ? Value(ir::DivOp::create(rewriter, loc, queries, factor.value))
                               : Value(ir::MulOp::create(rewriter, loc, queries, factor.value));
    }
    Value keys = key.materialize(rewriter, loc);
    if (!columns.empty()) {
      std::tie(queries, keys) = addColumns(rewriter, loc, queries, keys, columns, scale);
    }
    Value values = operands->value.materialize(rewriter, loc);
    Value sink = sunk ? sunk->make(rewriter, loc) : Value();
    auto attention = ir::AttentionOp::create(rewriter, loc, queries, keys, values, maskValue, sink,
                                             scale, mask.causal(), mask.window(), scores->softcap);
    Value result = attention.getResult();
    if (Value seeing = mask.seeing(rewriter, loc)) {
      Value mean = meanOfKeys(rewriter, loc, values, query.shape[1]);
      result = ir::SelectOp::create(rewriter, loc, seeing, result, mean);
    }
    if (result.getType() != type) result = ir::ReshapeOp::create(rewriter, loc, type, result);
    rewriter.replaceOp(op, result);
    return success();
  }
};

// Takes scales, repeated heads, causality and windows into an attention that is one already.
struct SimplifyAttention : mlir::OpRewritePattern<ir::AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::AttentionOp op, PatternRewriter& rewriter) const override {
    if (op.getSequenceFirst()) return rewriter.notifyMatchFailure(op, "raised already");
    AttentionOperand query(op.getQuery()), key(op.getKey()), value(op.getValue());
    if (query.transposed) query = AttentionOperand::asIs(op.getQuery());
    if (key.transposed) key = AttentionOperand::asIs(op.getKey());
    if (value.transposed || value.scale != 1.0) value = AttentionOperand::asIs(op.getValue());
    AttentionOperand keyHeads = key.withoutRepeatedHeads();
    AttentionOperand valueHeads = value.withoutRepeatedHeads();
    bool repeats = keyHeads.shape[1] == valueHeads.shape[1] && keyHeads.shape[1] != key.shape[1];
    if (!repeats) {
      keyHeads = key;
      valueHeads = value;
    }
    AttentionMask mask(query.shape[0], query.shape[1], query.shape[2], keyHeads.shape[2]);
    if (op.getCausal() || op.getWindow() > 0) mask.structure();
    if (op.getSink() && takesWhatIsHidden(op.getSink())) mask.sink();
    bool resolved = false;
    if (Value given = op.getMask()) {
      if (elementOf(given).isInteger(1)) {
        mask.keep(given);
      } else {
        mask.add(given, 4);
      }
      resolved = mask.resolve();
    }
    bool simplerMask = resolved && mask.isSimpler();
    if (query.scale == 1.0 && key.scale == 1.0 && !repeats && !simplerMask) {
      return rewriter.notifyMatchFailure(op, "nothing to take in");
    }
    mlir::Location loc = op.getLoc();
    int64_t window = op.getWindow();
    if (simplerMask && mask.window() > 0) {
      window = window == 0 ? mask.window() : std::min(window, mask.window());
    }
    Value maskValue = simplerMask
                          ? mask.make(rewriter, loc, op.getResult().getType().getElementType())
                          : op.getMask();
    auto attention = ir::AttentionOp::create(
        rewriter, loc, query.materialize(rewriter, loc), keyHeads.materialize(rewriter, loc),
        valueHeads.materialize(rewriter, loc), maskValue, op.getSink(),
        op.getScale() * query.scale * key.scale, op.getCausal() || (simplerMask && mask.causal()),
        window, op.getSoftcap());
    rewriter.replaceOp(op, attention);
    return success();
  }
};

// attention(q c, k), heads behind positions → attention(q, k) of another scale; c may be in front
// of a reshape that made the heads.
struct ScaleOfHeads : mlir::OpRewritePattern<ir::AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::AttentionOp op, PatternRewriter& rewriter) const override {
    if (!op.getSequenceFirst()) return rewriter.notifyMatchFailure(op, "simplified otherwise");
    for (mlir::OpOperand* operand : {&op.getQueryMutable(), &op.getKeyMutable()}) {
      auto reshape = operand->get().getDefiningOp<ir::ReshapeOp>();
      Value product = reshape ? Value(reshape.getInput()) : operand->get();
      auto scaled = matchScaled(product);
      if (!scaled || !product.hasOneUse() || scaled->second == 0.0) continue;
      Value unscaled = scaled->first;
      if (reshape) {
        unscaled = ir::ReshapeOp::create(rewriter, reshape.getLoc(), reshape.getType(), unscaled);
      }
      rewriter.modifyOpInPlace(op, [&] {
        operand->set(unscaled);
        op.setScaleAttr(rewriter.getF64FloatAttr(op.getScale() * scaled->second));
      });
      return success();
    }
    return rewriter.notifyMatchFailure(op, "queries and keys are not scaled");
  }
};

// reshape(reshape(scores) + biases of rows + of columns), with keys in rows and columns → scores +
// reshape(biases), as the others have it.
struct BiasesOfSplitScores : mlir::OpRewritePattern<ir::ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::ReshapeOp op, PatternRewriter& rewriter) const override {
    if (!op->hasOneUse() || !llvm::isa<ir::SoftmaxOp>(*op->user_begin())) {
      return rewriter.notifyMatchFailure(op, "no scores of a softmax");
    }
    constexpr int kMaxBiases = 4;
    llvm::SmallVector<Value> biases;
    Value scores = op.getInput();
    for (;;) {
      auto split = scores.getDefiningOp<ir::ReshapeOp>();
      if (split && split.getInput().getType() == op.getType()) break;
      auto leads = [&](Value operand) {
        return operand.getType() == scores.getType() &&
               llvm::isa_and_nonnull<ir::AddOp, ir::ReshapeOp>(operand.getDefiningOp());
      };
      auto sum = matchEither<ir::AddOp>(scores, leads);
      if (!sum || biases.size() == kMaxBiases) {
        return rewriter.notifyMatchFailure(op, "no sum with scores that were split");
      }
      std::tie(scores, biases.emplace_back()) = *sum;
    }
    if (biases.empty()) return rewriter.notifyMatchFailure(op, "nothing is added");
    mlir::Location loc = op.getLoc();
    Value sum = biases.front();
    for (Value bias : llvm::drop_begin(biases)) sum = ir::AddOp::create(rewriter, loc, sum, bias);
    if (sum.getType() != scores.getType()) {
      sum = ir::BroadcastOp::create(rewriter, loc, scores.getType(), sum);
    }
    sum = ir::ReshapeOp::create(rewriter, loc, op.getType(), sum);
    rewriter.replaceOpWithNewOp<ir::AddOp>(op, scores.getDefiningOp<ir::ReshapeOp>().getInput(),
                                           sum);
    return success();
  }
};

// attention(q, k, v, learned biases of rows and columns) → attention(q and biases, k and ones, v).
struct BiasesToColumns : mlir::OpRewritePattern<ir::AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::AttentionOp op, PatternRewriter& rewriter) const override {
    Value mask = op.getMask();
    if (!mask || op.getSequenceFirst() || elementOf(mask) != elementOf(op.getQuery())) {
      return rewriter.notifyMatchFailure(op, "no mask of the queries' type");
    }
    std::optional<KeyColumns> columns =
        matchColumns(mask, shapeOf(op.getQuery()), tensorType(op.getKey()).getDimSize(2),
                     op.getSoftcap(), op.getScale());
    if (!columns) return rewriter.notifyMatchFailure(op, "the mask is not of few columns");
    auto [queries, keys] =
        addColumns(rewriter, op.getLoc(), op.getQuery(), op.getKey(), *columns, op.getScale());
    rewriter.replaceOpWithNewOp<ir::AttentionOp>(op, queries, keys, op.getValue(), Value(),
                                                 op.getSink(), op.getScale(), op.getCausal(),
                                                 op.getWindow(), op.getSoftcap());
    return success();
  }
};

// What puts the columns of an operand together, if something does.
ir::ConcatOp columnsOf(Value value) {
  auto concat = value.getDefiningOp<ir::ConcatOp>();
  const bool isOfColumns = concat && static_cast<int64_t>(concat.getDim()) == rankOf(value) - 1;
  return isOfColumns ? concat : ir::ConcatOp();
}

// attention(reshape(q) : [b * h, 1, s, d], ..) → attention(q : [b, h, s, d], ..).
struct SplitMergedHeads : mlir::OpRewritePattern<ir::AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::AttentionOp op, PatternRewriter& rewriter) const override {
    llvm::ArrayRef<int64_t> query = shapeOf(op.getQuery());
    bool hasHeads = query[1] != 1 || tensorType(op.getKey()).getDimSize(1) != 1 || op.getSink();
    if (op.getSequenceFirst() || hasHeads || !op.getLogsumexp().use_empty()) {
      return rewriter.notifyMatchFailure(op, "has heads");
    }
    llvm::SmallVector<int64_t> ofKey = mergedSizes(op.getKey(), 0);
    llvm::SmallVector<int64_t> ofValue = mergedSizes(op.getValue(), 0);
    llvm::SmallVector<int64_t> sizes = mergedSizes(op.getQuery(), 0);
    llvm::erase_if(sizes, [&](int64_t size) {
      return !llvm::is_contained(ofKey, size) || !llvm::is_contained(ofValue, size);
    });
    if (sizes.empty()) return rewriter.notifyMatchFailure(op, "batch and heads are not merged");
    // Where more than two dimensions were merged, as windows are with both, heads are innermost.
    int64_t heads = sizes.front();
    auto splitOne = [&](Value value) -> Value {
      llvm::SmallVector<int64_t> shape = llvm::to_vector(shapeOf(value));
      shape[0] = query[0] / heads;
      shape[1] = heads;
      auto type = tensorType(value).clone(shape);
      auto same = value.getDefiningOp<ir::BroadcastOp>();
      if (same && rankOf(same.getInput()) <= 2) {  // the same for all of them
        return ir::BroadcastOp::create(rewriter, op.getLoc(), type, same.getInput());
      }
      return ir::ReshapeOp::create(rewriter, op.getLoc(), type, value);
    };
    auto split = [&](Value value) -> Value {
      if (!value || tensorType(value).getDimSize(0) == 1) return value;  // no mask, or one of all
      ir::ConcatOp columns = columnsOf(value);
      if (!columns) return splitOne(value);
      llvm::SmallVector<Value> parts = llvm::map_to_vector(columns.getInputs(), splitOne);
      return ir::ConcatOp::create(rewriter, op.getLoc(), parts, /*dim=*/3);
    };
    auto attention =
        ir::AttentionOp::create(rewriter, op.getLoc(), split(op.getQuery()), split(op.getKey()),
                                split(op.getValue()), split(op.getMask()), /*sink=*/Value(),
                                op.getScale(), op.getCausal(), op.getWindow(), op.getSoftcap());
    Value merged = ir::ReshapeOp::create(rewriter, op.getLoc(), op.getResult().getType(),
                                         attention.getResult());
    rewriter.replaceAllUsesWith(op.getResult(), merged);
    rewriter.eraseOp(op);
    return success();
  }
};

struct RaiseAttention : impl::RaiseAttentionBase<RaiseAttention> {
  void runOnOperation() override {
    mlir::RewritePatternSet patterns(&getContext());
    addScoreOrder(patterns);
    patterns.add<RowsOfHeads, ProbabilitiesFirst, RaiseProbabilitiesTimesValue, SimplifyAttention,
                 ScaleOfHeads, BiasesOfSplitScores, BiasesToColumns, SplitMergedHeads>(
        &getContext());
    if (failed(applyRaise(getOperation(), std::move(patterns)))) signalPassFailure();
  }
};

}  // namespace
}  // namespace oriel
