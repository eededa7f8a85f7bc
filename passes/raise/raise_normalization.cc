#include <cmath>

#include "passes/raise/match.h"
#include "passes/raise/passes.h"

namespace oriel {

#define GEN_PASS_DEF_RAISENORMALIZATION
#include "passes/raise/passes.h.inc"

namespace {

using mlir::LogicalResult;
using mlir::PatternRewriter;
using mlir::success;
using mlir::Value;

// A vector that scales or shifts the last dimension of `value`.
bool isRowVector(Value vector, Value value) {
  mlir::RankedTensorType type = tensorType(vector);
  return type.getRank() == 1 && tensorType(value).getRank() >= 1 &&
         type.getDimSize(0) == tensorType(value).getShape().back();
}

struct Normalized {
  Value input;
  double epsilon;
};

// input / √(mean(square) + epsilon), as a product with the inverse root or as a quotient, where
// `square` is the square of `input`.
std::optional<Normalized> matchNormalized(Value value) {
  auto meanSquareOf = [](Value input, Value radicand) -> std::optional<double> {
    auto shifted = matchShifted(radicand);
    if (!shifted) return std::nullopt;
    Value square = matchLastMean(shifted->first);
    if (!square || matchSquare(square) != input) return std::nullopt;
    // The norms refuse what is below 0, or no number.
    if (!(shifted->second >= 0)) return std::nullopt;
    return shifted->second;
  };
  if (auto op = value.getDefiningOp<ir::MulOp>()) {
    for (auto [input, scale] : {std::pair<Value, Value>(op.getLhs(), op.getRhs()),
                                std::pair<Value, Value>(op.getRhs(), op.getLhs())}) {
      Value radicand = matchInverseSqrt(scale);
      if (!radicand) continue;
      if (auto epsilon = meanSquareOf(input, radicand)) return Normalized{input, *epsilon};
    }
  }
  if (auto op = value.getDefiningOp<ir::DivOp>()) {
    if (auto root = op.getRhs().getDefiningOp<ir::SqrtOp>()) {
      if (auto epsilon = meanSquareOf(op.getLhs(), root.getInput())) {
        return Normalized{op.getLhs(), *epsilon};
      }
    }
  }
  return std::nullopt;
}

// x where the value is x - mean(x).
Value matchCentered(Value value) {
  auto op = value.getDefiningOp<ir::SubOp>();
  return op && matchLastMean(op.getRhs()) == op.getLhs() ? Value(op.getLhs()) : Value();
}

// normalized → rms_norm, or layer_norm if what is normalised was centered, with a weight of ones.
template <typename Op>
struct RaiseNorm : mlir::OpRewritePattern<Op> {
  using mlir::OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op, PatternRewriter& rewriter) const override {
    std::optional<Normalized> match = matchNormalized(op.getResult());
    if (!match || match->input.getType() != op.getType()) {
      return rewriter.notifyMatchFailure(op, "no value is normalised by its mean square");
    }
    mlir::RankedTensorType type = tensorType(match->input);
    auto row = type.clone({type.getShape().back()});
    auto one = mlir::DenseElementsAttr::get(
        row, mlir::Attribute(rewriter.getFloatAttr(type.getElementType(), 1.0)));
    Value weight = ir::ConstantOp::create(rewriter, op.getLoc(), one);
    if (Value input = matchCentered(match->input)) {
      auto norm = ir::LayerNormOp::create(rewriter, op.getLoc(), input, weight, Value(),
                                          rewriter.getF64FloatAttr(match->epsilon));
      rewriter.replaceOp(op, norm.getResult());
    } else {
      auto norm =
          ir::RmsNormOp::create(rewriter, op.getLoc(), match->input, weight, match->epsilon);
      rewriter.replaceOp(op, norm.getResult());
    }
    return success();
  }
};

// norm with a weight of ones * w → norm with the weight w.
struct AbsorbNormWeight : mlir::OpRewritePattern<ir::MulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::MulOp op, PatternRewriter& rewriter) const override {
    auto weightless = [](Value value) {
      auto isPlain = [&](auto norm) {
        return norm && value == norm.getResult() && value.hasOneUse() &&
               isSplat(norm.getWeight(), 1.0);
      };
      auto layerNorm = value.getDefiningOp<ir::LayerNormOp>();
      auto rmsNorm = value.getDefiningOp<ir::RmsNormOp>();
      return (isPlain(layerNorm) && !layerNorm.getBias()) ||
             (isPlain(rmsNorm) && rmsNorm.getWeightOffset() == 0.0);
    };
    auto match = matchEither<ir::MulOp>(op.getResult(), weightless);
    if (!match || !isRowVector(match->second, match->first)) {
      return rewriter.notifyMatchFailure(op, "no weightless norm times a row vector");
    }
    if (auto norm = match->first.getDefiningOp<ir::LayerNormOp>()) {
      auto result = ir::LayerNormOp::create(rewriter, op.getLoc(), norm.getInput(), match->second,
                                            Value(), norm.getEpsilonAttr());
      rewriter.replaceOp(op, result.getResult());
    } else {
      auto rmsNorm = match->first.getDefiningOp<ir::RmsNormOp>();
      auto result = ir::RmsNormOp::create(rewriter, op.getLoc(), rmsNorm.getInput(), match->second,
                                          rmsNorm.getEpsilon());
      rewriter.replaceOp(op, result.getResult());
    }
    return success();
  }
};

// rms_norm with the weight w + c → rms_norm with the weight w and an offset.
struct AbsorbWeightOffset : mlir::OpRewritePattern<ir::RmsNormOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::RmsNormOp op, PatternRewriter& rewriter) const override {
    auto shifted = matchShifted(op.getWeight());
    if (!shifted || !std::isfinite(shifted->second)) {
      return rewriter.notifyMatchFailure(op, "nothing is added to the weight");
    }
    auto result = ir::RmsNormOp::create(rewriter, op.getLoc(), op.getInput(), shifted->first,
                                        op.getEpsilon(), op.getWeightOffset() + shifted->second);
    rewriter.replaceOp(op, result);
    return success();
  }
};

// layer_norm without bias + b → layer_norm with bias.
struct AbsorbNormBias : mlir::OpRewritePattern<ir::AddOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::AddOp op, PatternRewriter& rewriter) const override {
    auto biasless = [](Value value) {
      auto norm = value.getDefiningOp<ir::LayerNormOp>();
      return norm && !norm.getBias() && value == norm.getResult() && value.hasOneUse();
    };
    auto match = matchEither<ir::AddOp>(op.getResult(), biasless);
    if (!match || !isRowVector(match->second, match->first)) {
      return rewriter.notifyMatchFailure(op, "no layer norm plus a row vector");
    }
    auto norm = match->first.getDefiningOp<ir::LayerNormOp>();
    auto result = ir::LayerNormOp::create(rewriter, op.getLoc(), norm.getInput(), norm.getWeight(),
                                          match->second, norm.getEpsilonAttr());
    rewriter.replaceOp(op, result.getResult());
    return success();
  }
};

struct RaiseNormalization : impl::RaiseNormalizationBase<RaiseNormalization> {
  void runOnOperation() override {
    mlir::RewritePatternSet patterns(&getContext());
    patterns.add<AbsorbNormBias, AbsorbNormWeight, AbsorbWeightOffset, RaiseNorm<ir::MulOp>,
                 RaiseNorm<ir::DivOp>>(&getContext());
    if (failed(applyRaise(getOperation(), std::move(patterns)))) signalPassFailure();
  }
};

}  // namespace
}  // namespace oriel
