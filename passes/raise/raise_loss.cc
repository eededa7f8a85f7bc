#include <cstdint>

#include "ir/oriel/builders.h"
#include "ir/oriel/labels.h"
#include "passes/raise/match.h"
#include "passes/raise/passes.h"

namespace oriel {

#define GEN_PASS_DEF_RAISELOSS
#include "passes/raise/passes.h.inc"

namespace {

using mlir::LogicalResult;
using mlir::PatternRewriter;
using mlir::success;
using mlir::Value;

// x where the value is log Σ exp(x) over the last dimension, which is kept with size 1.
Value matchLogSumExp(Value value) {
  if (auto log = value.getDefiningOp<ir::LogOp>()) {
    auto sum = matchKeptReduction<ir::ReduceSumOp>(log.getInput());
    auto exp = sum ? sum->first.getDefiningOp<ir::ExpOp>() : ir::ExpOp();
    return exp && sum->second == rankOf(exp) - 1 ? exp.getInput() : Value();
  }
  // m + log Σ exp(x - m)
  auto isLog = [](Value operand) { return operand.getDefiningOp<ir::LogOp>() != nullptr; };
  auto added = matchEither<ir::AddOp>(value, isLog);
  // One number of a row: what differs along it, as a prior of the classes, is no shift.
  const bool isOfRows = added && shapeOf(value) == shapeOf(added->first);
  Value inner = isOfRows ? matchLogSumExp(added->first) : Value();
  auto shifted = inner ? inner.getDefiningOp<ir::SubOp>() : ir::SubOp();
  return shifted && shifted.getRhs() == added->second ? shifted.getLhs() : Value();
}

// x of x less its maximum, which has the same softmax.
Value withoutMax(Value value) {
  auto shifted = value.getDefiningOp<ir::SubOp>();
  auto max = shifted ? matchKeptReduction<ir::ReduceMaxOp>(shifted.getRhs()) : std::nullopt;
  const bool isOfRows = max && max->first == shifted.getLhs() && max->second == rankOf(value) - 1;
  return isOfRows ? shifted.getLhs() : value;
}

// A gather of one element of each row of the last dimension.
bool isOfEachRow(ir::GatherOp gather) {
  const int64_t last = rankOf(gather.getInput()) - 1;
  return !gather.getFirst() && static_cast<int64_t>(gather.getDim()) == last &&
         static_cast<int64_t>(gather.getBatchDims()) == last && last > 0 &&
         rankOf(gather.getIndices()) == last + 1 && shapeOf(gather.getIndices()).back() == 1;
}

// -losses of the logits, for what the gather picks of them; shaped and typed as `like`.
Value logProbabilities(PatternRewriter& rewriter, Value logits, ir::GatherOp gather, Value like) {
  mlir::Location loc = gather.getLoc();
  Value labels = gather.getIndices();
  auto integer = [&](int64_t value) -> Value {
    auto scalar = tensorType(labels).clone(llvm::ArrayRef<int64_t>{});
    return ir::ConstantOp::create(
        rewriter, loc,
        mlir::DenseElementsAttr::get(scalar,
                                     rewriter.getIntegerAttr(scalar.getElementType(), value)));
  };
  // A gather counts negative ones from the end.
  Value isNegative = ir::LessOp::create(rewriter, loc, labels, integer(0));
  Value fromEnd = ir::AddOp::create(rewriter, loc, labels, integer(shapeOf(logits).back()));
  labels = ir::SelectOp::create(rewriter, loc, isNegative, fromEnd, labels);
  auto rows = tensorType(labels).clone(shapeOf(labels).drop_back());
  labels = ir::reshapeTo(rewriter, loc, labels, rows);
  auto op = ir::TokenLossesOp::create(rewriter, loc, logits, labels, ir::kNoLabel);
  Value result = ir::NegOp::create(rewriter, loc, op.getLosses().getType(), op.getLosses());
  result = ir::reshapeTo(rewriter, loc, result, tensorType(result).clone(shapeOf(like)));
  if (result.getType() == like.getType()) return result;
  return ir::CastOp::create(rewriter, loc, like.getType(), result);
}

// What a value was before reshapes that keep the last dimension, and that nothing else reads.
Value beforeReshapesOfRows(Value value) {
  while (auto reshape = value.getDefiningOp<ir::ReshapeOp>()) {
    Value input = reshape.getInput();
    const bool keepsRows =
        rankOf(input) > 0 && rankOf(value) > 0 && shapeOf(input).back() == shapeOf(value).back();
    if (!keepsRows || !value.hasOneUse()) break;
    value = input;
  }
  return value;
}

// A gather of log_softmax(x) → of the tokens' losses. What is read elsewhere too is made anyway.
struct GatherOfLogSoftmax : mlir::OpRewritePattern<ir::GatherOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::GatherOp op, PatternRewriter& rewriter) const override {
    auto logs = beforeReshapesOfRows(op.getInput()).getDefiningOp<ir::SubOp>();
    if (!logs || !logs->hasOneUse() || !isOfEachRow(op) ||
        matchLogSumExp(logs.getRhs()) != logs.getLhs()) {
      return rewriter.notifyMatchFailure(op, "not of one logarithm of each row of a softmax");
    }
    Value logits =
        ir::reshapeTo(rewriter, op.getLoc(), withoutMax(logs.getLhs()), tensorType(op.getInput()));
    rewriter.replaceOp(op, logProbabilities(rewriter, logits, op, op.getResult()));
    return success();
  }
};

Value withoutReshapes(Value value) {
  while (auto reshape = value.getDefiningOp<ir::ReshapeOp>()) value = reshape.getInput();
  return value;
}

// A gather of x, less log Σ exp(x) → of the tokens' losses.
struct GatherLessLogSumExp : mlir::OpRewritePattern<ir::SubOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::SubOp op, PatternRewriter& rewriter) const override {
    auto gather = withoutReshapes(op.getLhs()).getDefiningOp<ir::GatherOp>();
    Value sum = withoutReshapes(op.getRhs());
    if (!gather || !isOfEachRow(gather) || !sum.hasOneUse() ||
        matchLogSumExp(sum) != gather.getInput()) {
      return rewriter.notifyMatchFailure(op, "not of one logit of each row and its row");
    }
    const int64_t rows = tensorType(gather).getNumElements();
    auto isOfRows = [&](Value value) { return tensorType(value).getNumElements() == rows; };
    if (!isOfRows(op) || !isOfRows(op.getLhs()) || !isOfRows(op.getRhs())) {
      return rewriter.notifyMatchFailure(op, "rows are broadcast");
    }
    Value logits = gather.getInput();
    rewriter.replaceOp(op, logProbabilities(rewriter, logits, gather, op.getResult()));
    return success();
  }
};

// What a loss is of: logits, or the input of a layer that gives them to nothing else.
template <typename Loss>
class LossInput {
 public:
  explicit LossInput(Loss loss) : loss_(loss), value_(loss.getLogits()) {
    layer_ = value_.getDefiningOp<ir::LinearOp>();
    if (layer_ && !layer_->hasOneUse()) layer_ = {};
    if (layer_) value_ = layer_.getInput();
  }

  Value value() const { return value_; }

  // The loss of another input, whose rows have these labels.
  Loss with(PatternRewriter& rewriter, Value input, Value labels) {
    if (layer_) {
      input = ir::LinearOp::create(rewriter, layer_.getLoc(), input, layer_.getWeight(),
                                   layer_.getBias(), layer_.getTransposeWeight());
    }
    return Loss::create(rewriter, loss_.getLoc(), input, labels, loss_.getIgnoreIndex());
  }

 private:
  Loss loss_;
  ir::LinearOp layer_;
  Value value_;
};

// `back` makes of each token's loss those that there were. Sums are of all of them.
using OfRows = llvm::function_ref<Value(Value)>;

void replace(PatternRewriter& rewriter, ir::CrossEntropyOp op, ir::CrossEntropyOp made, OfRows) {
  rewriter.replaceAllUsesWith(op.getLossSum(), made.getLossSum());
  rewriter.replaceAllUsesWith(op.getTokenCount(), made.getTokenCount());
  rewriter.eraseOp(op);
}

void replace(PatternRewriter& rewriter, ir::TokenLossesOp op, ir::TokenLossesOp made, OfRows back) {
  rewriter.replaceAllUsesWith(op.getLosses(), back(made.getLosses()));
  rewriter.eraseOp(op);
}

// A loss of what was made rows of → of that as it was, [samples, positions, ..] say.
template <typename Loss>
struct LossBeforeRows : mlir::OpRewritePattern<Loss> {
  using mlir::OpRewritePattern<Loss>::OpRewritePattern;

  LogicalResult matchAndRewrite(Loss op, PatternRewriter& rewriter) const override {
    LossInput<Loss> input(op);
    Value logits = input.value();
    auto flattened = logits.getDefiningOp<ir::ReshapeOp>();
    if (!flattened || !op.getLogsumexp().use_empty()) {
      return rewriter.notifyMatchFailure(op, "of no reshape");
    }
    llvm::ArrayRef<int64_t> apart = shapeOf(flattened.getInput()), rows = shapeOf(flattened);
    if (apart.size() <= rows.size() || apart.back() != rows.back() || rows.back() == 0) {
      return rewriter.notifyMatchFailure(op, "no rows were merged");
    }
    Value labels = ir::reshapeTo(rewriter, op.getLoc(), op.getLabels(),
                                 tensorType(op.getLabels()).clone(apart.drop_back()));
    replace(rewriter, op, input.with(rewriter, flattened.getInput(), labels), [&](Value losses) {
      return ir::reshapeTo(rewriter, op.getLoc(), losses, tensorType(op.getLogsumexp()));
    });
    return success();
  }
};

// A loss of a slice with most of the rows → of all of them, of which the labels of the others are
// ignored.
template <typename Loss>
struct LossBeforeSlice : mlir::OpRewritePattern<Loss> {
  using mlir::OpRewritePattern<Loss>::OpRewritePattern;

  LogicalResult matchAndRewrite(Loss op, PatternRewriter& rewriter) const override {
    LossInput<Loss> input(op);
    Value logits = input.value();
    auto slice = logits.getDefiningOp<ir::SliceOp>();
    if (!slice || !op.getLogsumexp().use_empty()) {
      return rewriter.notifyMatchFailure(op, "of no slice");
    }
    llvm::ArrayRef<int64_t> kept = slice.getType().getShape(), all = shapeOf(slice.getInput());
    auto isOne = [](int64_t stride) { return stride == 1; };
    // What comes in is computed, too.
    constexpr int64_t kLeastKept = 3, kOf = 4;
    const int64_t rows = ir::elementCount(kept.drop_back());
    const bool isMost = rows > 0 && kOf * rows >= kLeastKept * ir::elementCount(all.drop_back());
    if (kept.back() != all.back() || !llvm::all_of(slice.getStrides(), isOne) || !isMost) {
      return rewriter.notifyMatchFailure(op, "of columns, of every n-th row, or of few");
    }
    if (!isLabel(op.getIgnoreIndex(), elementOf(op.getLabels()))) {
      return rewriter.notifyMatchFailure(op, "no label is ignored");
    }
    llvm::SmallVector<int64_t> low(slice.getStarts().drop_back()), high;
    for (auto [start, size, whole] : llvm::zip(low, kept, all)) {
      high.push_back(whole - start - size);
    }
    const llvm::SmallVector<int64_t> interior(low.size(), 0);
    Value labels = ir::PadOp::create(rewriter, op.getLoc(), op.getLabels(), low, high, interior,
                                     static_cast<double>(op.getIgnoreIndex()));
    replace(rewriter, op, input.with(rewriter, slice.getInput(), labels), [&](Value losses) {
      return ir::SliceOp::create(rewriter, op.getLoc(), losses, slice.getStarts().drop_back(),
                                 slice.getLimits().drop_back(), slice.getStrides().drop_back());
    });
    return success();
  }

 private:
  // Whether a pad can write the number.
  static bool isLabel(int64_t number, mlir::Type element) {
    constexpr int64_t kLargest = int64_t{1} << 31;  // of i32; f64, as pads have it, holds more
    return (element.isInteger(64) || element.isInteger(32)) && number >= -kLargest &&
           number < kLargest;
  }
};

struct RaiseLoss : impl::RaiseLossBase<RaiseLoss> {
  void runOnOperation() override {
    mlir::RewritePatternSet patterns(&getContext());
    patterns.add<GatherOfLogSoftmax, GatherLessLogSumExp, LossBeforeRows<ir::CrossEntropyOp>,
                 LossBeforeRows<ir::TokenLossesOp>, LossBeforeSlice<ir::CrossEntropyOp>,
                 LossBeforeSlice<ir::TokenLossesOp>>(&getContext());
    if (failed(applyRaise(getOperation(), std::move(patterns)))) signalPassFailure();
  }
};

}  // namespace
}  // namespace oriel
