#include <cmath>
#include <limits>
#include <tuple>
#include <type_traits>

#include "ir/oriel/builders.h"
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

// A vector that scales or shifts the last dimension of `value`: [n], or [1, .., n].
bool isRowVector(Value vector, Value value) {
  llvm::ArrayRef<int64_t> shape = shapeOf(vector);
  const size_t rank = rankOf(value);
  return !shape.empty() && shape.size() <= rank && shape.back() == shapeOf(value).back() &&
         tensorType(vector).getNumElements() == shape.back();
}

// The same as [n].
Value rowVector(PatternRewriter& rewriter, mlir::Location loc, Value vector) {
  mlir::RankedTensorType type = tensorType(vector);
  return ir::reshapeTo(rewriter, loc, vector, type.clone({type.getShape().back()}));
}

// scale * input / √(mean(input²) + epsilon)
struct Normalized {
  Value input;
  double epsilon, scale;
};

// Whether kernels of rows in f32 can add it: 0, or no less than the smallest normal number.
bool isEpsilon(double epsilon) {
  return epsilon == 0 || (epsilon >= std::numeric_limits<float>::min() && std::isfinite(epsilon));
}

// Where the radicand is the mean or the sum of the input's squares, and a constant.
std::optional<Normalized> matchRadicand(Value input, Value radicand) {
  auto [squares, epsilon] = matchShifted(radicand).value_or(std::pair(radicand, 0.0));
  double count = 1;
  Value square = matchLastMean(squares);
  if (!square) {
    auto sum = matchKeptReduction<ir::ReduceSumOp>(squares);
    if (!sum || sum->second != rankOf(input) - 1) return std::nullopt;
    square = sum->first;
    count = static_cast<double>(shapeOf(input).back());
  }
  if (square.getType() != input.getType() || matchSquare(square) != input || !(count > 0) ||
      !isEpsilon(epsilon / count)) {
    return std::nullopt;
  }
  return Normalized{input, epsilon / count, 1 / std::sqrt(count)};
}

// The same by a root, or a multiple of it, that is at least a small number, as
// torch.nn.functional.normalize has it: small beside √mean, whatever the multiple is. With
// the square of that number as an epsilon, rows that are ten times as long differ by 0.5 %, rows of
// 1e-4 by less than f32 has.
std::optional<Normalized> matchRoot(Value input, Value root) {
  constexpr double kSmall = 1e-8;
  if (auto broadcast = root.getDefiningOp<ir::BroadcastOp>()) root = broadcast.getInput();
  double least = 0;
  auto isLeast = [](Value value) {
    std::optional<double> splat = splatValue(value);
    return splat && *splat > 0 && *splat <= kSmall;
  };
  if (auto match = matchEither<ir::MaxOp>(root, isLeast)) {
    least = *splatValue(match->first);
    root = match->second;
  }
  double factor = 1;  // of the root: √sum / √count is √mean
  if (auto scaled = matchScaled(root); scaled && scaled->second > 0) {
    std::tie(root, factor) = *scaled;
  }
  auto sqrt = root.getDefiningOp<ir::SqrtOp>();
  std::optional<Normalized> match = sqrt ? matchRadicand(input, sqrt.getInput()) : std::nullopt;
  if (!match) return std::nullopt;
  match->scale /= factor;
  const double shortest = least * match->scale;
  if (!std::isfinite(match->scale) || shortest > kSmall) return std::nullopt;
  const double epsilon = shortest * shortest;
  if (!isEpsilon(epsilon) || (least > 0 && epsilon == 0)) return std::nullopt;
  match->epsilon += epsilon;
  return match;
}

// As a product with the inverse root, or as a quotient.
std::optional<Normalized> matchNormalized(Value value) {
  if (auto op = value.getDefiningOp<ir::MulOp>()) {
    for (auto [input, scale] : {std::pair<Value, Value>(op.getLhs(), op.getRhs()),
                                std::pair<Value, Value>(op.getRhs(), op.getLhs())}) {
      Value radicand = matchInverseSqrt(scale);
      if (!radicand) continue;
      if (auto match = matchRadicand(input, radicand)) return match;
    }
  }
  if (auto op = value.getDefiningOp<ir::DivOp>()) return matchRoot(op.getLhs(), op.getRhs());
  return std::nullopt;
}

// x where the value is x - mean(x).
Value matchCentered(Value value) {
  auto op = value.getDefiningOp<ir::SubOp>();
  return op && matchLastMean(op.getRhs()) == op.getLhs() ? Value(op.getLhs()) : Value();
}

// A weight of equal elements for the columns of `like`.
Value splatRow(PatternRewriter& rewriter, mlir::Location loc, Value like, double element) {
  mlir::RankedTensorType type = tensorType(like);
  auto row = type.clone({type.getShape().back()});
  auto elements = mlir::DenseElementsAttr::get(
      row, mlir::Attribute(rewriter.getFloatAttr(type.getElementType(), element)));
  return ir::ConstantOp::create(rewriter, loc, elements);
}

// normalized → rms_norm, or layer_norm if what is normalised was centered, with a weight of equal
// elements.
template <typename Op>
struct RaiseNorm : mlir::OpRewritePattern<Op> {
  using mlir::OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op, PatternRewriter& rewriter) const override {
    std::optional<Normalized> match = matchNormalized(op.getResult());
    if (!match || match->input.getType() != op.getType()) {
      return rewriter.notifyMatchFailure(op, "no value is normalised by its mean square");
    }
    Value weight = splatRow(rewriter, op.getLoc(), match->input, match->scale);
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

// x * (w / √radicand) → x / √radicand * w: what is the norm and what its weight.
struct WeightOnInverseRoot : mlir::OpRewritePattern<ir::MulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::MulOp op, PatternRewriter& rewriter) const override {
    for (auto [input, scale] : {std::pair<Value, Value>(op.getLhs(), op.getRhs()),
                                std::pair<Value, Value>(op.getRhs(), op.getLhs())}) {
      if (input.getType() != op.getType()) continue;
      auto isRoot = [input = input](Value value) {
        Value radicand = matchInverseSqrt(value);
        return radicand && matchRadicand(input, radicand);
      };
      auto weighted = matchEither<ir::MulOp>(scale, isRoot);
      if (!weighted || !isRowVector(weighted->second, input)) continue;
      Value norm = ir::MulOp::create(rewriter, op.getLoc(), input, weighted->first);
      rewriter.replaceOpWithNewOp<ir::MulOp>(op, norm, weighted->second);
      return success();
    }
    return rewriter.notifyMatchFailure(op, "no weight on the root that is divided by");
  }
};

// (x w) / √radicand → x / √radicand * w.
template <typename Op>
struct WeightOnInput : mlir::OpRewritePattern<Op> {
  using mlir::OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op, PatternRewriter& rewriter) const override {
    constexpr bool kIsQuotient = std::is_same_v<Op, ir::DivOp>;
    for (auto [product, root] : {std::pair<Value, Value>(op.getLhs(), op.getRhs()),
                                 std::pair<Value, Value>(op.getRhs(), op.getLhs())}) {
      auto isRootOf = [root = root](Value input) {
        if constexpr (kIsQuotient) return matchRoot(input, root).has_value();
        Value radicand = matchInverseSqrt(root);
        return radicand && matchRadicand(input, radicand);
      };
      auto weighted = matchEither<ir::MulOp>(product, isRootOf);
      if (weighted && weighted->first.getType() == op.getType() &&
          isRowVector(weighted->second, weighted->first)) {
        Value norm = Op::create(rewriter, op.getLoc(), weighted->first, root);
        rewriter.template replaceOpWithNewOp<ir::MulOp>(op, norm, weighted->second);
        return success();
      }
      if (kIsQuotient) break;
    }
    return rewriter.notifyMatchFailure(op, "no weight on what is divided by its root");
  }
};

// norm with a weight of equal elements c * w → norm with the weight c w, where w is one for each
// column or a number.
struct AbsorbNormWeight : mlir::OpRewritePattern<ir::MulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::MulOp op, PatternRewriter& rewriter) const override {
    auto weightless = [](Value value) {
      auto isPlain = [&](auto norm) {
        return norm && value == norm.getResult() && value.hasOneUse() &&
               splatValue(norm.getWeight());
      };
      auto layerNorm = value.getDefiningOp<ir::LayerNormOp>();
      auto rmsNorm = value.getDefiningOp<ir::RmsNormOp>();
      return (isPlain(layerNorm) && !layerNorm.getBias()) ||
             (isPlain(rmsNorm) && rmsNorm.getWeightOffset() == 0.0);
    };
    auto match = matchEither<ir::MulOp>(op.getResult(), weightless);
    if (!match || match->first.getType() != op.getType()) {
      return rewriter.notifyMatchFailure(op, "no weightless norm");
    }
    auto layerNorm = match->first.getDefiningOp<ir::LayerNormOp>();
    auto rmsNorm = match->first.getDefiningOp<ir::RmsNormOp>();
    Value old = layerNorm ? layerNorm.getWeight() : rmsNorm.getWeight(), weight = match->second;
    if (std::optional<double> factor = splatValue(weight)) {
      weight = splatRow(rewriter, op.getLoc(), match->first, *splatValue(old) * *factor);
    } else if (!isRowVector(weight, match->first)) {
      return rewriter.notifyMatchFailure(op, "times no row vector");
    } else {
      weight = rowVector(rewriter, op.getLoc(), weight);
      if (!isSplat(old, 1.0)) weight = ir::MulOp::create(rewriter, op.getLoc(), weight, old);
    }
    if (layerNorm) {
      auto result = ir::LayerNormOp::create(rewriter, op.getLoc(), layerNorm.getInput(), weight,
                                            Value(), layerNorm.getEpsilonAttr());
      rewriter.replaceOp(op, result.getResult());
    } else {
      auto result = ir::RmsNormOp::create(rewriter, op.getLoc(), rmsNorm.getInput(), weight,
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
    Value bias = rowVector(rewriter, op.getLoc(), match->second);
    auto result = ir::LayerNormOp::create(rewriter, op.getLoc(), norm.getInput(), norm.getWeight(),
                                          bias, norm.getEpsilonAttr());
    rewriter.replaceOp(op, result.getResult());
    return success();
  }
};

// x - mean before `op`: the op that the model has, if it has one.
Value centeredBefore(PatternRewriter& rewriter, mlir::Operation* op, Value x, Value mean) {
  for (mlir::Operation* user : mean.getUsers()) {
    auto sub = llvm::dyn_cast<ir::SubOp>(user);
    if (!sub || sub.getLhs() != x || sub.getRhs() != mean || sub->getBlock() != op->getBlock()) {
      continue;
    }
    if (!sub->isBeforeInBlock(op)) rewriter.moveOpBefore(sub, op);
    return sub;
  }
  return ir::SubOp::create(rewriter, op->getLoc(), x, mean);
}

// mean(x²) - mean(x)² → mean((x - mean(x))²), as which layer_norm computes it: the faster variance
// of Flax and Keras.
struct VarianceOfCentered : mlir::OpRewritePattern<ir::SubOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::SubOp op, PatternRewriter& rewriter) const override {
    Value squares = matchLastMean(op.getLhs()), mean = matchSquare(op.getRhs());
    Value x = squares ? matchSquare(squares) : Value();
    if (!x || !mean || matchLastMean(mean) != x || mean.getType() != op.getType()) {
      return rewriter.notifyMatchFailure(op, "no mean of squares less the square of the mean");
    }
    Value centered = centeredBefore(rewriter, op, x, mean);
    Value square = ir::MulOp::create(rewriter, op.getLoc(), centered, centered);
    rewriter.replaceOpWithNewOp<ir::ReduceMeanOp>(
        op, square, llvm::ArrayRef<int64_t>{rankOf(x) - 1}, /*keepDims=*/true);
    return success();
  }
};

// max(mean(x²), 0) → mean(x²)
struct VarianceIsPositive : mlir::OpRewritePattern<ir::MaxOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::MaxOp op, PatternRewriter& rewriter) const override {
    auto match =
        matchEither<ir::MaxOp>(op.getResult(), [](Value value) { return isSplat(value, 0.0); });
    Value squares = match ? matchLastMean(match->second) : Value();
    if (!squares || !matchSquare(squares) || match->second.getType() != op.getType()) {
      return rewriter.notifyMatchFailure(op, "no mean of squares and 0");
    }
    rewriter.replaceOp(op, match->second);
    return success();
  }
};

// x s + (b - mean(x) s) → (x - mean(x)) s + b, and without b: norms as one product and one sum.
struct CenterBeforeScale : mlir::OpRewritePattern<ir::AddOp> {
  using OpRewritePattern::OpRewritePattern;

  // b and mean where `shift` is b - mean * scale, written with a difference or a negation.
  static std::optional<std::pair<Value, Value>> matchShift(Value shift, Value scale) {
    auto isScale = [&](Value value) { return value == scale; };
    auto meanOf = [&](Value value, bool negated) {  // of (±mean) * scale
      auto match = matchEither<ir::MulOp>(value, isScale);
      Value mean = match ? match->second : Value();
      if (!mean || !negated) return mean;
      auto neg = mean.getDefiningOp<ir::NegOp>();
      return neg ? Value(neg.getInput()) : Value();
    };
    auto negatedMean = [&](Value value) {
      if (auto neg = value.getDefiningOp<ir::NegOp>()) return meanOf(neg.getInput(), false);
      return meanOf(value, true);
    };
    if (Value mean = negatedMean(shift)) return std::pair(Value(), mean);
    if (auto sub = shift.getDefiningOp<ir::SubOp>()) {
      if (Value mean = meanOf(sub.getRhs(), false)) return std::pair(Value(sub.getLhs()), mean);
    }
    auto sum = matchEither<ir::AddOp>(shift, [&](Value value) { return !!negatedMean(value); });
    if (!sum) return std::nullopt;
    return std::pair(sum->second, negatedMean(sum->first));
  }

  LogicalResult matchAndRewrite(ir::AddOp op, PatternRewriter& rewriter) const override {
    for (auto [product, shift] : {std::pair<Value, Value>(op.getLhs(), op.getRhs()),
                                  std::pair<Value, Value>(op.getRhs(), op.getLhs())}) {
      auto mul = product.getDefiningOp<ir::MulOp>();
      if (!mul || mul.getType() != op.getType()) continue;
      for (auto [x, scale] : {std::pair<Value, Value>(mul.getLhs(), mul.getRhs()),
                              std::pair<Value, Value>(mul.getRhs(), mul.getLhs())}) {
        auto match = x.getType() == op.getType() ? matchShift(shift, scale) : std::nullopt;
        if (!match || matchLastMean(match->second) != x) continue;
        Value centered = centeredBefore(rewriter, op, x, match->second);
        Value scaled = ir::MulOp::create(rewriter, op.getLoc(), centered, scale);
        if (match->first) {
          rewriter.replaceOpWithNewOp<ir::AddOp>(op, scaled, match->first);
        } else {
          rewriter.replaceOp(op, scaled);
        }
        return success();
      }
    }
    return rewriter.notifyMatchFailure(op, "no value less its mean by one product and one sum");
  }
};

struct RaiseNormalization : impl::RaiseNormalizationBase<RaiseNormalization> {
  void runOnOperation() override {
    mlir::RewritePatternSet patterns(&getContext());
    patterns.add<AbsorbNormBias, AbsorbNormWeight, AbsorbWeightOffset, CenterBeforeScale,
                 RaiseNorm<ir::MulOp>, RaiseNorm<ir::DivOp>, VarianceIsPositive, VarianceOfCentered,
                 WeightOnInput<ir::MulOp>, WeightOnInput<ir::DivOp>, WeightOnInverseRoot>(
        &getContext());
    if (failed(applyRaise(getOperation(), std::move(patterns)))) signalPassFailure();
  }
};

}  // namespace
}  // namespace oriel
