#include <cmath>

#include "passes/raise/match.h"
#include "passes/raise/passes.h"

namespace oriel {

#define GEN_PASS_DEF_RAISEMEAN
#include "passes/raise/passes.h.inc"

namespace {

using mlir::LogicalResult;
using mlir::PatternRewriter;
using mlir::success;
using mlir::Value;

// Σ x / n → mean(x), perhaps with a reshape in between, which keeps dimensions with size 1.
template <typename Op>
struct MeanOfSum : mlir::OpRewritePattern<Op> {
  using mlir::OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op, PatternRewriter& rewriter) const override {
    auto scaled = matchScaled(op.getResult());
    if (!scaled || scaled->first.getType() != op.getType()) {
      return rewriter.notifyMatchFailure(op, "not scaled by a number");
    }
    auto reshape = scaled->first.template getDefiningOp<ir::ReshapeOp>();
    Value reduced = reshape ? Value(reshape.getInput()) : scaled->first;
    auto sum = reduced.getDefiningOp<ir::ReduceSumOp>();
    if (!sum || elementOf(sum.getInput()) != op.getType().getElementType()) {
      return rewriter.notifyMatchFailure(op, "no sum");
    }
    double count = 1;
    for (int64_t dim : sum.getDims()) {
      count *= static_cast<double>(tensorType(sum.getInput()).getDimSize(dim));
    }
    if (!(std::abs(scaled->second * count - 1.0) <= 1e-6)) {
      return rewriter.notifyMatchFailure(op, "not by the number of summands");
    }
    Value mean = ir::ReduceMeanOp::create(rewriter, op.getLoc(), sum.getInput(), sum.getDims(),
                                          sum.getKeepDims());
    if (reshape) mean = ir::ReshapeOp::create(rewriter, op.getLoc(), op.getType(), mean);
    rewriter.replaceOp(op, mean);
    return success();
  }
};

// reshape(mean(x)) that keeps the dimensions with size 1 → the mean that does.
struct KeptMean : mlir::OpRewritePattern<ir::ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::ReshapeOp op, PatternRewriter& rewriter) const override {
    auto mean = op.getInput().getDefiningOp<ir::ReduceMeanOp>();
    if (!mean || mean.getKeepDims()) return rewriter.notifyMatchFailure(op, "no mean");
    llvm::SmallVector<int64_t> kept(shapeOf(mean.getInput()));
    for (int64_t dim : mean.getDims()) kept[dim] = 1;
    if (op.getType().getShape() != llvm::ArrayRef<int64_t>(kept)) {
      return rewriter.notifyMatchFailure(op, "other dimensions");
    }
    rewriter.replaceOpWithNewOp<ir::ReduceMeanOp>(op, mean.getInput(), mean.getDims(),
                                                  /*keep_dims=*/true);
    return success();
  }
};

struct RaiseMean : impl::RaiseMeanBase<RaiseMean> {
  void runOnOperation() override {
    mlir::RewritePatternSet patterns(&getContext());
    patterns.add<KeptMean, MeanOfSum<ir::DivOp>, MeanOfSum<ir::MulOp>>(&getContext());
    if (failed(applyRaise(getOperation(), std::move(patterns)))) signalPassFailure();
  }
};

}  // namespace
}  // namespace oriel
