#include <cmath>
#include <limits>

#include "ir/oriel/builders.h"
#include "passes/raise/match.h"
#include "passes/raise/passes.h"
#include "passes/raise/visible_keys.h"

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

// A constant of ones and zeros, with a one in each row of the last dimension, as booleans; null
// where it is none.
mlir::DenseElementsAttr maskOfOnes(Value value) {
  auto op = value.getDefiningOp<ir::ConstantOp>();
  auto elements =
      op ? llvm::dyn_cast<mlir::DenseFPElementsAttr>(op.getValue()) : mlir::DenseFPElementsAttr();
  if (!elements || elements.getType().getRank() == 0) return {};
  const int64_t row = elements.getType().getShape().back();
  llvm::SmallVector<bool> mask;
  for (const llvm::APFloat& element : elements.getValues<llvm::APFloat>()) {
    if (!element.isZero() && !element.isExactlyValue(1.0)) return {};
    mask.push_back(!element.isZero());
  }
  for (size_t i = 0; i < mask.size(); i += row) {
    if (!llvm::is_contained(llvm::ArrayRef(mask).slice(i, row), true)) return {};
  }
  auto type = elements.getType().clone(mlir::IntegerType::get(value.getContext(), 1));
  return mlir::DenseElementsAttr::get(llvm::cast<mlir::ShapedType>(type), mask);
}

// max(-inf, x) → x.
struct MaxWithLowest : mlir::OpRewritePattern<ir::MaxOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::MaxOp op, PatternRewriter& rewriter) const override {
    auto isLowest = [](Value value) { return splatValue(value) == -INFINITY; };
    auto match = matchEither<ir::MaxOp>(op.getResult(), isLowest);
    if (!match || match->second.getType() != op.getType()) {
      return rewriter.notifyMatchFailure(op, "no operand is -infinity");
    }
    rewriter.replaceOp(op, match->second);
    return success();
  }
};

// softmax(x) m / Σ softmax(x) m, 0 where the sum is → softmax(m ? x : -inf), for a constant mask m
// of ones that hides no row; for a mask of the data m ? softmax(m ? x : lowest) : 0, which is 0
// where nothing is shown. As jax2onnx writes attention.
struct SoftmaxOfMasked : mlir::OpRewritePattern<ir::SelectOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::SelectOp op, PatternRewriter& rewriter) const override {
    auto quotient = op.getOnTrue().getDefiningOp<ir::DivOp>();
    auto isPositive = op.getCondition().getDefiningOp<ir::GreaterOp>();
    if (!quotient || !isPositive || !isSplat(op.getOnFalse(), 0.0) ||
        !isSplat(isPositive.getRhs(), 0.0)) {
      return rewriter.notifyMatchFailure(op, "no quotient where a sum is positive");
    }
    Value masked = quotient.getLhs(), sum = isPositive.getLhs();
    auto divisor = quotient.getRhs().getDefiningOp<ir::SelectOp>();
    const bool isSafe =
        divisor && divisor.getCondition() == op.getCondition() && divisor.getOnTrue() == sum;
    auto isSoftmax = [](Value value) { return value.getDefiningOp<ir::SoftmaxOp>() != nullptr; };
    auto match = matchEither<ir::MulOp>(masked, isSoftmax);
    if (!match || !(isSafe || quotient.getRhs() == sum) || masked.getType() != op.getType() ||
        match->first.getType() != op.getType()) {
      return rewriter.notifyMatchFailure(op, "no masked softmax by its sum");
    }
    auto softmax = match->first.getDefiningOp<ir::SoftmaxOp>();
    const int64_t last = op.getType().getRank() - 1;
    if (static_cast<int64_t>(softmax.getDim()) != last ||
        reducedDim<ir::ReduceSumOp>(sum, masked) != last) {
      return rewriter.notifyMatchFailure(op, "no sum of the rows that softmax makes");
    }
    mlir::Location loc = op.getLoc();
    Value scores = softmax.getInput();
    if (Value shown = matchNumberOfBoolean(withoutRepetition(match->second))) {
      shown = expandRank(rewriter, loc, shown, last + 1);
      Value lowest =
          ir::scalarConstant(rewriter, loc, std::numeric_limits<float>::lowest(), scores);
      Value zero = ir::scalarConstant(rewriter, loc, 0.0, scores);
      scores = ir::SelectOp::create(rewriter, loc, shown, scores, lowest);
      Value probabilities = ir::SoftmaxOp::create(rewriter, loc, scores, last);
      rewriter.replaceOpWithNewOp<ir::SelectOp>(op, shown, probabilities, zero);
      return success();
    }
    mlir::DenseElementsAttr mask = maskOfOnes(match->second);
    if (!mask || mask.getType().getShape().back() != op.getType().getShape().back()) {
      return rewriter.notifyMatchFailure(op, "no mask of ones that leaves each row something");
    }
    Value shown = ir::ConstantOp::create(rewriter, loc, mask);
    Value hidden = ir::scalarConstant(rewriter, loc, -INFINITY, scores);
    scores = ir::SelectOp::create(rewriter, loc, shown, scores, hidden);
    rewriter.replaceOpWithNewOp<ir::SoftmaxOp>(op, scores, last);
    return success();
  }
};

struct RaiseSoftmax : impl::RaiseSoftmaxBase<RaiseSoftmax> {
  void runOnOperation() override {
    mlir::RewritePatternSet patterns(&getContext());
    patterns.add<MaxWithLowest, SoftmaxOfExp<ir::DivOp>, SoftmaxOfExp<ir::MulOp>, SoftmaxOfMasked,
                 SoftmaxOfShifted>(&getContext());
    if (failed(applyRaise(getOperation(), std::move(patterns)))) signalPassFailure();
  }
};

}  // namespace
}  // namespace oriel
