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

// normalized * w → rms_norm, or layer_norm if what is normalised was centered.
struct RaiseNorm : mlir::OpRewritePattern<ir::MulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::MulOp op, PatternRewriter& rewriter) const override {
    for (auto [product, weight] : {std::pair<Value, Value>(op.getLhs(), op.getRhs()),
                                   std::pair<Value, Value>(op.getRhs(), op.getLhs())}) {
      std::optional<Normalized> match = matchNormalized(product);
      if (!match || !isRowVector(weight, product)) continue;
      auto epsilon = rewriter.getF64FloatAttr(match->epsilon);
      if (Value input = matchCentered(match->input)) {
        auto norm = ir::LayerNormOp::create(rewriter, op.getLoc(), input, weight, Value(), epsilon);
        rewriter.replaceOp(op, norm.getResult());
      } else {
        auto norm = ir::RmsNormOp::create(rewriter, op.getLoc(), match->input, weight, epsilon);
        rewriter.replaceOp(op, norm.getResult());
      }
      return success();
    }
    return rewriter.notifyMatchFailure(op, "no operand is normalised by its mean square");
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
    patterns.add<AbsorbNormBias, RaiseNorm>(&getContext());
    if (failed(applyRaise(getOperation(), std::move(patterns)))) signalPassFailure();
  }
};

}  // namespace
}  // namespace oriel
