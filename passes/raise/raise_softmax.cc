#include "passes/raise/match.h"
#include "passes/raise/passes.h"

namespace oriel {

#define GEN_PASS_DEF_RAISESOFTMAX
#include "passes/raise/passes.h.inc"

namespace {

using mlir::LogicalResult;
using mlir::PatternRewriter;
using mlir::success;
using mlir::Value;

// The dimension over which the value reduces `input`, and which it keeps with size 1.
template <typename ReduceOp>
std::optional<int64_t> reducedDim(Value value, Value input) {
  auto match = matchKeptReduction<ReduceOp>(value);
  return match && match->first == input ? std::optional(match->second) : std::nullopt;
}

// exp(x) / Σ exp(x) → softmax(x), as a quotient or as a product with the reciprocal.
template <typename Op>
struct SoftmaxOfExp : mlir::OpRewritePattern<Op> {
  using mlir::OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op, PatternRewriter& rewriter) const override {
    auto isExp = [](Value value) { return value.getDefiningOp<ir::ExpOp>() != nullptr; };
    Value exp = op.getLhs(), sum = op.getRhs();
    if constexpr (std::is_same_v<Op, ir::MulOp>) {
      auto match = matchEither<Op>(op.getResult(), isExp);
      auto reciprocal =
          match ? match->second.template getDefiningOp<ir::ReciprocalOp>() : ir::ReciprocalOp();
      if (!reciprocal) return rewriter.notifyMatchFailure(op, "no reciprocal times exp(x)");
      exp = match->first;
      sum = reciprocal.getInput();
    }
    std::optional<int64_t> dim = isExp(exp) ? reducedDim<ir::ReduceSumOp>(sum, exp) : std::nullopt;
    if (!dim || exp.getType() != op.getType()) {
      return rewriter.notifyMatchFailure(op, "no exp(x) by its sum over one dimension");
    }
    rewriter.replaceOpWithNewOp<ir::SoftmaxOp>(op, exp.getDefiningOp<ir::ExpOp>().getInput(), *dim);
    return success();
  }
};

// softmax(x - max(x)) → softmax(x). It has the same derivative: what all of a row are shifted by
// has none.
struct SoftmaxOfShifted : mlir::OpRewritePattern<ir::SoftmaxOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::SoftmaxOp op, PatternRewriter& rewriter) const override {
    auto shifted = op.getInput().getDefiningOp<ir::SubOp>();
    if (!shifted || reducedDim<ir::ReduceMaxOp>(shifted.getRhs(), shifted.getLhs()) !=
                        static_cast<int64_t>(op.getDim())) {
      return rewriter.notifyMatchFailure(op, "not of what is less than its maximum by");
    }
    rewriter.replaceOpWithNewOp<ir::SoftmaxOp>(op, shifted.getLhs(), op.getDim());
    return success();
  }
};

struct RaiseSoftmax : impl::RaiseSoftmaxBase<RaiseSoftmax> {
  void runOnOperation() override {
    mlir::RewritePatternSet patterns(&getContext());
    patterns.add<SoftmaxOfExp<ir::DivOp>, SoftmaxOfExp<ir::MulOp>, SoftmaxOfShifted>(&getContext());
    if (failed(applyRaise(getOperation(), std::move(patterns)))) signalPassFailure();
  }
};

}  // namespace
}  // namespace oriel
