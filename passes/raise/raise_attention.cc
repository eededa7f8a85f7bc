#include <functional>
#include <limits>

#include "mlir/IR/Matchers.h"
#include "passes/raise/match.h"
#include "passes/raise/passes.h"

namespace oriel {

#define GEN_PASS_DEF_RAISEATTENTION
#include "passes/raise/passes.h.inc"

namespace {

using mlir::LogicalResult;
using mlir::PatternRewriter;
using mlir::success;
using mlir::Value;

// A query, key or value below the scales and transposes around it. `source` holds its elements in
// order; its last two dimensions are those of `shape`, the leading ones may be split otherwise.
struct Peeled {
  Value source;
  llvm::SmallVector<int64_t> shape;  // [b, h, s, d]
  double scale = 1.0;
  bool transposed = false;
  bool swapped = false;  // the last two dimensions of `shape` are those of `source` the other way

  void swapLastTwo() {
    swapped = true;
    transposed = !transposed;
    std::swap(shape[shape.size() - 2], shape.back());
  }

  Value materialize(PatternRewriter& rewriter, mlir::Location loc) const {
    Value result = source;
    if (swapped) {
      llvm::SmallVector<int64_t> permutation =
          llvm::to_vector(llvm::seq<int64_t>(tensorType(source).getRank()));
      std::swap(permutation[permutation.size() - 2], permutation.back());
      result = ir::TransposeOp::create(rewriter, loc, source, permutation);
    }
    if (tensorType(result).getShape() == llvm::ArrayRef<int64_t>(shape)) return result;
    return ir::ReshapeOp::create(rewriter, loc, tensorType(result).clone(shape), result);
  }
};

Peeled peel(Value value) {
  Peeled result{value, llvm::to_vector(tensorType(value).getShape())};
  for (;;) {
    if (auto scaled = matchScaled(result.source)) {
      result.source = scaled->first;
      result.scale *= scaled->second;
    } else if (Value inner = matchTransposed(result.source)) {
      result.source = inner;
      result.transposed = !result.transposed;
      std::swap(result.shape[result.shape.size() - 2], result.shape.back());
    } else {
      return result;
    }
  }
}

// Takes off the repetition of each of g heads r times in a row, [b, g, t, d] → [b, g, r, t, d] →
// [b, g * r, t, d]; otherwise gives the operand itself.
Peeled withoutRepeatedHeads(const Peeled& operand) {
  Value repeated = operand.source;
  if (auto merge = repeated.getDefiningOp<ir::ReshapeOp>()) repeated = merge.getInput();
  auto repeat = repeated.getDefiningOp<ir::BroadcastOp>();
  if (!repeat || operand.swapped || operand.shape.size() != 4) return operand;
  llvm::ArrayRef<int64_t> one = tensorType(repeat.getInput()).getShape();
  llvm::ArrayRef<int64_t> many = tensorType(repeat.getResult()).getShape();
  if (one.size() != 5 || many.size() != 5 || one[2] != 1) return operand;
  llvm::SmallVector<int64_t> onlyRepeats = llvm::to_vector(one);
  onlyRepeats[2] = many[2];
  llvm::SmallVector<int64_t> merged = {one[0], one[1] * many[2], one[3], one[4]};
  if (many != llvm::ArrayRef<int64_t>(onlyRepeats) || operand.shape != merged) return operand;
  Peeled result = operand;
  result.source = repeat.getInput();
  if (auto split = result.source.getDefiningOp<ir::ReshapeOp>()) result.source = split.getInput();
  result.shape = {one[0], one[1], one[3], one[4]};
  return result;
}

// The softmax that a value is, with or without NaN replaced by 0.
ir::SoftmaxOp matchSoftmax(Value value) {
  if (auto softmax = value.getDefiningOp<ir::SoftmaxOp>()) return softmax;
  auto select = value.getDefiningOp<ir::SelectOp>();
  if (!select || !splatValue(select.getOnTrue()) || *splatValue(select.getOnTrue()) != 0.0) {
    return {};
  }
  auto softmax = select.getOnFalse().getDefiningOp<ir::SoftmaxOp>();
  // x is NaN where it is not equal to itself.
  auto isNan = select.getCondition().getDefiningOp<ir::NotOp>();
  auto equal = isNan ? isNan.getInput().getDefiningOp<ir::EqualOp>() : ir::EqualOp();
  if (!softmax || !equal || equal.getLhs() != softmax.getResult() ||
      equal.getRhs() != softmax.getResult()) {
    return {};
  }
  return softmax;
}

struct Mask {
  Value value;  // null: none
  bool causal = false;
  // Makes the value where it is not there yet. Called when nothing can fail any more: a pattern
  // that makes ops and then fails is tried for ever.
  std::function<Value(PatternRewriter&)> make = nullptr;
};

// Whether a known boolean mask [.., s, t] is true just where j <= i + t - s.
bool isCausal(mlir::DenseElementsAttr mask) {
  llvm::ArrayRef<int64_t> shape = mask.getType().getShape();
  if (shape.size() < 2) return false;
  int64_t rows = shape[shape.size() - 2], columns = shape.back();
  if (rows <= 1) return false;
  int64_t index = 0;
  for (bool visible : mask.getValues<bool>()) {
    int64_t column = index % columns, row = index / columns % rows;
    if (visible != (column <= row + columns - rows)) return false;
    ++index;
  }
  return true;
}

// Whether every row of a known boolean mask has a true element.
bool everyRowSees(mlir::DenseElementsAttr mask) {
  int64_t columns = mask.getType().getShape().back();
  int64_t index = 0;
  bool sees = false;
  for (bool visible : mask.getValues<bool>()) {
    sees = sees || visible;
    if (++index % columns != 0) continue;
    if (!sees) return false;
    sees = false;
  }
  return true;
}

struct MaskedScores {
  Value scores;
  Mask mask;
};

bool isProduct(Value value) {
  return static_cast<bool>(peel(value).source.getDefiningOp<ir::MatmulOp>());
}

// Scores that a select replaces by -large where they are not to be seen, as a mask that is added
// to them.
std::optional<MaskedScores> matchReplacedScores(Value value) {
  auto select = value.getDefiningOp<ir::SelectOp>();
  if (!select) return std::nullopt;
  bool keeps = isProduct(select.getOnTrue());
  Value scores = keeps ? select.getOnTrue() : select.getOnFalse();
  std::optional<double> low = splatValue(keeps ? select.getOnFalse() : select.getOnTrue());
  if (!isProduct(scores) || scores.getType() != value.getType() || !low) return std::nullopt;
  // For one that is not large, the sum with the scores would differ from what replaces them.
  if (!(*low <= -1e9)) return std::nullopt;

  mlir::Location loc = select.getLoc();
  Value condition = select.getCondition();
  Value known = condition;
  if (auto broadcast = known.getDefiningOp<ir::BroadcastOp>()) known = broadcast.getInput();
  mlir::DenseElementsAttr table;
  if (mlir::matchPattern(known, mlir::m_Constant(&table)) && tensorType(known).getRank() >= 2) {
    llvm::SmallVector<bool> visible;
    for (bool element : table.getValues<bool>()) visible.push_back(element == keeps);
    auto keep = mlir::DenseElementsAttr::get(table.getType(), visible);
    if (!everyRowSees(keep)) return std::nullopt;
    if (isCausal(keep)) return MaskedScores{scores, {Value(), true}};
    auto make = [=](PatternRewriter& rewriter) -> Value {
      return ir::ConstantOp::create(rewriter, loc, keep);
    };
    return MaskedScores{scores, {Value(), false, make}};
  }
  bool isInfinite = *low == -std::numeric_limits<double>::infinity();
  if (!isInfinite && *low > -1e30) return std::nullopt;
  mlir::Type element = tensorType(value).getElementType();
  auto make = [=](PatternRewriter& rewriter) -> Value {
    Value keep = keeps ? condition : ir::NotOp::create(rewriter, loc, condition).getResult();
    if (isInfinite) return keep;
    auto scalar = mlir::RankedTensorType::get({}, element);
    auto constant = [&](double number) -> Value {
      auto attribute = rewriter.getFloatAttr(element, number);
      return ir::ConstantOp::create(rewriter, loc, mlir::DenseElementsAttr::get(scalar, attribute));
    };
    // Any score vanishes beside it.
    return ir::SelectOp::create(rewriter, loc, keep, constant(0.0), constant(*low));
  };
  return MaskedScores{scores, {Value(), false, make}};
}

// What `select(keep, 0, -large)` added to the scores means as a boolean mask. A finite large
// number is the same as -inf only if every row sees something: else softmax is uniform there.
Mask matchAdditiveMask(Value added) {
  Value core = added;
  if (auto broadcast = core.getDefiningOp<ir::BroadcastOp>()) core = broadcast.getInput();

  mlir::DenseElementsAttr table;
  if (mlir::matchPattern(core, mlir::m_Constant(&table)) && !table.isSplat() &&
      table.getElementType().isF32()) {
    // A folded select: 0 where visible, else large and negative.
    llvm::SmallVector<bool> visible;
    for (float element : table.getValues<float>()) {
      if (element != 0.0f && element > -1e30f) return {added};
      visible.push_back(element == 0.0f);
    }
    auto type = mlir::RankedTensorType::get(table.getType().getShape(),
                                            mlir::IntegerType::get(added.getContext(), 1));
    auto keep = mlir::DenseElementsAttr::get(type, visible);
    if (isCausal(keep) && everyRowSees(keep)) return {Value(), true};
    return {added};
  }

  auto select = core.getDefiningOp<ir::SelectOp>();
  if (!select || core != added) return {added};
  std::optional<double> kept = splatValue(select.getOnTrue());
  std::optional<double> dropped = splatValue(select.getOnFalse());
  if (!kept || !dropped || *kept != 0.0 || *dropped > -1e30) return {added};
  Value keep = select.getCondition();
  Value known = keep;
  if (auto broadcast = known.getDefiningOp<ir::BroadcastOp>()) known = broadcast.getInput();
  if (mlir::matchPattern(known, mlir::m_Constant(&table)) && tensorType(known).getRank() >= 2) {
    if (everyRowSees(table)) return isCausal(table) ? Mask{Value(), true} : Mask{keep};
    return {added};
  }
  return *dropped == -std::numeric_limits<double>::infinity() ? Mask{keep} : Mask{added};
}

struct RaiseProbabilitiesTimesValue : mlir::OpRewritePattern<ir::MatmulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::MatmulOp op, PatternRewriter& rewriter) const override {
    mlir::RankedTensorType type = tensorType(op.getResult());
    bool mergesHeads = type.getRank() == 3;  // [b * h, s, e]: as if each sample had one head
    if ((type.getRank() != 4 && !mergesHeads) || op.getTransposeLhs()) {
      return rewriter.notifyMatchFailure(op, "no [b, h, s, e] product");
    }
    ir::SoftmaxOp softmax = matchSoftmax(op.getLhs());
    if (!softmax || static_cast<int64_t>(softmax.getDim()) != type.getRank() - 1) {
      return rewriter.notifyMatchFailure(op,
                                         "the left operand is no softmax over its last dimension");
    }
    Value scores = softmax.getInput();
    Mask mask;
    if (auto add = scores.getDefiningOp<ir::AddOp>()) {
      auto match = matchEither<ir::AddOp>(scores, isProduct);
      if (!match || match->first.getType() != scores.getType()) {
        return rewriter.notifyMatchFailure(op, "scores are no product plus a mask");
      }
      scores = match->first;
      mask = matchAdditiveMask(match->second);
    } else if (auto match = matchReplacedScores(scores)) {
      scores = match->scores;
      mask = match->mask;
    }
    // Attention has no cotangent for its mask: a learned bias (of relative positions) stays
    // outside.
    if (mask.value && dependsOnParameter(mask.value)) {
      return rewriter.notifyMatchFailure(op, "the mask depends on a parameter");
    }
    std::pair<Value, double> scaled = matchScaled(scores).value_or(std::make_pair(scores, 1.0));
    auto product = scaled.first.getDefiningOp<ir::MatmulOp>();
    if (!product) return rewriter.notifyMatchFailure(op, "scores are no product");

    Peeled query = peel(product.getLhs());
    Peeled key = peel(product.getRhs());
    if (query.transposed != product.getTransposeLhs()) {
      return rewriter.notifyMatchFailure(op, "the query is transposed");
    }
    if (key.shape.size() >= 2 && key.transposed == product.getTransposeRhs()) {
      // Its transpose may be one with that of the heads: [b, t, h, d] → [b, h, d, t].
      key.swapLastTwo();
    }
    Peeled value = peel(op.getRhs());
    if (value.transposed != op.getTransposeRhs() || value.scale != 1.0) {
      return rewriter.notifyMatchFailure(op, "the value is scaled or transposed");
    }
    for (Peeled* operand : {&query, &key, &value}) {
      if (static_cast<int64_t>(operand->shape.size()) != type.getRank()) {
        return rewriter.notifyMatchFailure(op, "operands of other ranks");
      }
      if (mergesHeads) operand->shape.insert(operand->shape.begin() + 1, 1);
    }
    Peeled keyHeads = withoutRepeatedHeads(key);
    Peeled valueHeads = withoutRepeatedHeads(value);
    if (keyHeads.shape[1] != valueHeads.shape[1]) {
      keyHeads = key;
      valueHeads = value;
    }
    // A product may repeat operands over the batch or the heads; attention does not.
    if (query.shape[0] != keyHeads.shape[0] || query.shape[0] != valueHeads.shape[0] ||
        keyHeads.shape[1] == 0 || query.shape[1] % keyHeads.shape[1] != 0 ||
        keyHeads.shape[1] != valueHeads.shape[1]) {
      return rewriter.notifyMatchFailure(op, "operands differ in batch or heads");
    }
    mlir::Location loc = op.getLoc();
    if (mask.make) mask.value = mask.make(rewriter);
    if (mask.value && mergesHeads && tensorType(mask.value).getRank() == 3) {
      llvm::SmallVector<int64_t> shape = llvm::to_vector(tensorType(mask.value).getShape());
      shape.insert(shape.begin() + 1, 1);
      mask.value =
          ir::ReshapeOp::create(rewriter, loc, tensorType(mask.value).clone(shape), mask.value);
    }
    if (mask.value) mask.value = expandRank(rewriter, loc, mask.value, 4);
    auto attention = ir::AttentionOp::create(rewriter, loc, query.materialize(rewriter, loc),
                                             keyHeads.materialize(rewriter, loc),
                                             valueHeads.materialize(rewriter, loc), mask.value,
                                             scaled.second * query.scale * key.scale, mask.causal);
    Value result = attention.getResult();
    if (mergesHeads) result = ir::ReshapeOp::create(rewriter, loc, type, result);
    rewriter.replaceOp(op, result);
    return success();
  }
};

struct RaiseAttention : impl::RaiseAttentionBase<RaiseAttention> {
  void runOnOperation() override {
    mlir::RewritePatternSet patterns(&getContext());
    patterns.add<RaiseProbabilitiesTimesValue>(&getContext());
    if (failed(applyRaise(getOperation(), std::move(patterns)))) signalPassFailure();
  }
};

}  // namespace
}  // namespace oriel
