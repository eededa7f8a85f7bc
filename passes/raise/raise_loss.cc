#include <cstdint>

#include "ir/oriel/builders.h"
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

// What a cross entropy is of: logits, or the input of a layer that gives them to nothing else.
class LossInput {
 public:
  explicit LossInput(ir::CrossEntropyOp loss) : loss_(loss), value_(loss.getLogits()) {
    layer_ = value_.getDefiningOp<ir::LinearOp>();
    if (layer_ && !layer_->hasOneUse()) layer_ = {};
    if (layer_) value_ = layer_.getInput();
  }

  Value value() const { return value_; }

  // The loss of another input, whose rows have these labels.
  void replace(PatternRewriter& rewriter, Value input, Value labels) {
    mlir::Location loc = loss_.getLoc();
    if (layer_) {
      input = ir::LinearOp::create(rewriter, layer_.getLoc(), input, layer_.getWeight(),
                                   layer_.getBias(), layer_.getTransposeWeight());
    }
    auto made = ir::CrossEntropyOp::create(rewriter, loc, input, labels, loss_.getIgnoreIndex());
    rewriter.replaceAllUsesWith(loss_.getLossSum(), made.getLossSum());
    rewriter.replaceAllUsesWith(loss_.getTokenCount(), made.getTokenCount());
    rewriter.eraseOp(loss_);
  }

 private:
  ir::CrossEntropyOp loss_;
  ir::LinearOp layer_;
  Value value_;
};

// A loss of what was made rows of → of that as it was, [samples, positions, ..] say. It is the sum
// of all rows.
struct LossBeforeRows : mlir::OpRewritePattern<ir::CrossEntropyOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::CrossEntropyOp op, PatternRewriter& rewriter) const override {
    LossInput input(op);
    auto flattened = input.value().getDefiningOp<ir::ReshapeOp>();
    if (!flattened || !op.getLogsumexp().use_empty()) {
      return rewriter.notifyMatchFailure(op, "of no reshape");
    }
    llvm::ArrayRef<int64_t> apart = shapeOf(flattened.getInput()), rows = shapeOf(flattened);
    if (apart.size() <= rows.size() || apart.back() != rows.back() || rows.back() == 0) {
      return rewriter.notifyMatchFailure(op, "no rows were merged");
    }
    Value labels = ir::reshapeTo(rewriter, op.getLoc(), op.getLabels(),
                                 tensorType(op.getLabels()).clone(apart.drop_back()));
    input.replace(rewriter, flattened.getInput(), labels);
    return success();
  }
};

// A loss of a slice with most of the rows → of all of them, of which the labels of the others are
// ignored.
struct LossBeforeSlice : mlir::OpRewritePattern<ir::CrossEntropyOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::CrossEntropyOp op, PatternRewriter& rewriter) const override {
    LossInput input(op);
    auto slice = input.value().getDefiningOp<ir::SliceOp>();
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
    input.replace(rewriter, slice.getInput(), labels);
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
    patterns.add<LossBeforeRows, LossBeforeSlice>(&getContext());
    if (failed(applyRaise(getOperation(), std::move(patterns)))) signalPassFailure();
  }
};

}  // namespace
}  // namespace oriel
