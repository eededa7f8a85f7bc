#include "passes/raise/match.h"
#include "passes/raise/passes.h"

namespace oriel {

#define GEN_PASS_DEF_RAISELINEAR
#include "passes/raise/passes.h.inc"

namespace {

using mlir::failure;
using mlir::LogicalResult;
using mlir::PatternRewriter;
using mlir::success;
using mlir::Value;

// linear(x, transpose(w)) → linear(x, w) with the flag flipped; also where dimensions are merged
// behind the transpose, as an einsum does with experts' weights: [e, f, d] → [d, e, f] → [d, e *
// f].
struct AbsorbWeightTranspose : mlir::OpRewritePattern<ir::LinearOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::LinearOp op, PatternRewriter& rewriter) const override {
    mlir::RankedTensorType type = tensorType(op.getWeight());
    auto merge = op.getWeight().getDefiningOp<ir::ReshapeOp>();
    Value moved = merge ? merge.getInput() : op.getWeight();
    auto transpose = moved.getDefiningOp<ir::TransposeOp>();
    if (!transpose) return rewriter.notifyMatchFailure(op, "the weight is not transposed");
    llvm::ArrayRef<int64_t> shape = transpose.getType().getShape();
    auto isExchange = [&](size_t rows) {
      return ir::elementCount(shape.take_front(rows)) == type.getDimSize(0) &&
             exchangesGroups(transpose, /*batch=*/0, rows, shape.size() - rows);
    };
    if (llvm::none_of(llvm::seq<size_t>(1, shape.size()), isExchange)) {
      return rewriter.notifyMatchFailure(op, "rows and columns don't change places");
    }
    Value weight = transpose.getInput();
    if (merge) {
      weight = ir::ReshapeOp::create(rewriter, merge.getLoc(),
                                     type.clone({type.getDimSize(1), type.getDimSize(0)}), weight);
    }
    rewriter.replaceOpWithNewOp<ir::LinearOp>(op, op.getInput(), weight, op.getBias(),
                                              !op.getTransposeWeight());
    return success();
  }
};

// linear(x, w) + b → linear(x, w, b).
struct AbsorbBias : mlir::OpRewritePattern<ir::AddOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::AddOp op, PatternRewriter& rewriter) const override {
    auto biasless = [](Value value) {
      auto linear = value.getDefiningOp<ir::LinearOp>();
      return linear && !linear.getBias() && linear->hasOneUse();
    };
    auto match = matchEither<ir::AddOp>(op.getResult(), biasless);
    if (!match) return rewriter.notifyMatchFailure(op, "no operand is a linear layer");
    auto [product, bias] = *match;
    if (tensorType(bias).getRank() != 1 || product.getType() != op.getType() ||
        tensorType(bias).getDimSize(0) != tensorType(product).getShape().back()) {
      return rewriter.notifyMatchFailure(op, "the other operand is no bias");
    }
    auto linear = product.getDefiningOp<ir::LinearOp>();
    rewriter.replaceOpWithNewOp<ir::LinearOp>(op, linear.getInput(), linear.getWeight(), bias,
                                              linear.getTransposeWeight());
    return success();
  }
};

struct RaiseLinear : impl::RaiseLinearBase<RaiseLinear> {
  void runOnOperation() override {
    mlir::RewritePatternSet patterns(&getContext());
    patterns.add<AbsorbBias, AbsorbWeightTranspose>(&getContext());
    if (failed(applyRaise(getOperation(), std::move(patterns)))) signalPassFailure();
  }
};

}  // namespace
}  // namespace oriel
