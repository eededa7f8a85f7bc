#include "ir/oriel/builders.h"
#include "passes/raise/match.h"
#include "passes/raise/passes.h"

namespace oriel {

#define GEN_PASS_DEF_RAISELOGARITHM
#include "passes/raise/passes.h.inc"

namespace {

using mlir::Location;
using mlir::LogicalResult;
using mlir::PatternRewriter;
using mlir::success;
using mlir::Value;

// log(1 + exp(-|x|)). Its derivative at 0, where it jumps, is 0: the middle.
Value logOfOnePlus(PatternRewriter& rewriter, Location loc, Value x) {
  mlir::Type type = x.getType();
  Value negative =
      ir::NegOp::create(rewriter, loc, type, ir::AbsOp::create(rewriter, loc, type, x));
  Value small = ir::ExpOp::create(rewriter, loc, type, negative);
  Value one = ir::scalarConstant(rewriter, loc, 1, x);
  return ir::LogOp::create(rewriter, loc, type, ir::AddOp::create(rewriter, loc, small, one));
}

// log(sigmoid(x)) → min(x, 0) - log(1 + exp(-|x|)). The derivative at 0 is 1/2, as equal operands
// of a minimum share it.
struct LogOfSigmoid : mlir::OpRewritePattern<ir::LogOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::LogOp op, PatternRewriter& rewriter) const override {
    auto sigmoid = op.getInput().getDefiningOp<ir::SigmoidOp>();
    if (!sigmoid) return rewriter.notifyMatchFailure(op, "no sigmoid");
    Value x = sigmoid.getInput();
    Value zero = ir::scalarConstant(rewriter, op.getLoc(), 0, x);
    Value negative = ir::MinOp::create(rewriter, op.getLoc(), x, zero);
    rewriter.replaceOpWithNewOp<ir::SubOp>(op, negative, logOfOnePlus(rewriter, op.getLoc(), x));
    return success();
  }
};

// log(exp(a) + exp(b)) → max(a, b) + log(1 + exp(-|a - b|)), where a - b is 0 of equal infinities.
struct LogOfExponentials : mlir::OpRewritePattern<ir::LogOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::LogOp op, PatternRewriter& rewriter) const override {
    auto sum = op.getInput().getDefiningOp<ir::AddOp>();
    auto left = sum ? sum.getLhs().getDefiningOp<ir::ExpOp>() : ir::ExpOp();
    auto right = sum ? sum.getRhs().getDefiningOp<ir::ExpOp>() : ir::ExpOp();
    if (!left || !right) return rewriter.notifyMatchFailure(op, "no sum of two exponentials");
    Location loc = op.getLoc();
    Value a = left.getInput(), b = right.getInput();
    Value difference = ir::SubOp::create(rewriter, loc, a, b);
    difference = ir::SelectOp::create(rewriter, loc, ir::EqualOp::create(rewriter, loc, a, b),
                                      ir::scalarConstant(rewriter, loc, 0, a), difference);
    rewriter.replaceOpWithNewOp<ir::AddOp>(op, ir::MaxOp::create(rewriter, loc, a, b),
                                           logOfOnePlus(rewriter, loc, difference));
    return success();
  }
};

struct RaiseLogarithm : impl::RaiseLogarithmBase<RaiseLogarithm> {
  void runOnOperation() override {
    mlir::RewritePatternSet patterns(&getContext());
    patterns.add<LogOfExponentials, LogOfSigmoid>(&getContext());
    if (failed(applyRaise(getOperation(), std::move(patterns)))) signalPassFailure();
  }
};

}  // namespace
}  // namespace oriel
