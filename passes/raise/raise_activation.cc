#include <cmath>

#include "passes/raise/match.h"
#include "passes/raise/passes.h"

namespace oriel {

#define GEN_PASS_DEF_RAISEACTIVATION
#include "passes/raise/passes.h.inc"

namespace {

using mlir::LogicalResult;
using mlir::PatternRewriter;
using mlir::success;
using mlir::Value;

// (x, c) for x * c, where c is 1 for x itself.
std::pair<Value, double> scaledOrSelf(Value value) {
  if (auto match = matchScaled(value)) return *match;
  return {value, 1.0};
}

bool isAbout(double a, double b) { return std::abs(a - b) <= 1e-5 * std::abs(b); }

// Whether a is b as a file in 16 bits holds it.
bool isRounded(double a, double b) {
  for (const llvm::fltSemantics* type : {&llvm::APFloat::BFloat(), &llvm::APFloat::IEEEhalf()}) {
    llvm::APFloat rounded(b);
    bool isLossy = false;
    rounded.convert(*type, llvm::APFloat::rmNearestTiesToEven, &isLossy);
    rounded.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &isLossy);
    if (isAbout(a, rounded.convertToDouble())) return true;
  }
  return false;
}

// Whether a factor is b, perhaps rounded.
bool close(double a, double b) { return isAbout(a, b) || isRounded(a, b); }

// 1/√2, or what √2 divides by.
bool isRootOfHalf(double a) { return close(a, std::sqrt(0.5)) || close(1 / a, std::sqrt(2.0)); }

// The name of the activation that `gate` makes of x in x * gate, up to the factor given back:
// sigmoid(x), sigmoid(1.702 x), 1 + erf(x/√2), 1 + tanh(√(2/π) (x + 0.044715 x³)).
struct Gate {
  llvm::StringRef kind;
  double factor;  // what x * gate is to be multiplied with
};

// factor * x², with the factor on the square or on one x.
bool isScaledSquare(Value value, Value x, double factor) {
  auto [square, outer] = scaledOrSelf(value);
  if (close(outer, factor) && matchSquare(square) == x) return true;
  auto match = matchEither<ir::MulOp>(value, [&](Value operand) { return operand == x; });
  if (!match) return false;
  auto [other, inner] = scaledOrSelf(match->second);
  return other == x && close(inner, factor);
}

bool isTanhArgument(Value argument, Value x) {
  const double outer = std::sqrt(2.0 / M_PI);
  // √(2/π) x (1 + 0.044715 x²), with the factor on x or on the product.
  if (auto product = argument.getDefiningOp<ir::MulOp>()) {
    for (auto [left, right] : {std::pair<Value, Value>(product.getLhs(), product.getRhs()),
                               std::pair<Value, Value>(product.getRhs(), product.getLhs())}) {
      auto [base, scale] = scaledOrSelf(left);
      auto shifted = matchShifted(right);
      if (base != x || !close(scale, outer) || !shifted || !close(shifted->second, 1.0)) continue;
      if (isScaledSquare(shifted->first, x, 0.044715)) return true;
    }
  }
  auto [inner, scale] = scaledOrSelf(argument);
  if (!close(scale, outer)) return false;
  if (auto product = inner.getDefiningOp<ir::MulOp>()) {
    auto match = matchEither<ir::MulOp>(inner, [&](Value value) { return value == x; });
    auto shifted = match ? matchShifted(match->second) : std::nullopt;
    return shifted && close(shifted->second, 1.0) && isScaledSquare(shifted->first, x, 0.044715);
  }
  auto sum = matchEither<ir::AddOp>(inner, [&](Value value) { return value == x; });
  if (!sum) return false;
  auto [cube, factor] = scaledOrSelf(sum->second);
  if (!close(factor, 0.044715)) return false;
  if (auto pow = cube.getDefiningOp<ir::PowOp>()) {
    return pow.getLhs() == x && isSplat(pow.getRhs(), 3.0);
  }
  auto product = matchEither<ir::MulOp>(cube, [&](Value value) { return value == x; });
  return product && matchSquare(product->second) == x;
}

std::optional<Gate> matchGate(Value gate, Value x) {
  if (auto sigmoid = gate.getDefiningOp<ir::SigmoidOp>()) {
    auto [argument, scale] = scaledOrSelf(sigmoid.getInput());
    if (sigmoid.getInput() == x) return Gate{"silu", 1.0};
    if (argument == x && close(scale, 1.702)) return Gate{"gelu_quick", 1.0};
    return std::nullopt;
  }
  // 1 - erf(-x/√2), which Keras writes with the complement of erf.
  if (auto opposite = gate.getDefiningOp<ir::SubOp>();
      opposite && isSplat(opposite.getLhs(), 1.0)) {
    auto erf = opposite.getRhs().getDefiningOp<ir::ErfOp>();
    if (!erf) return std::nullopt;
    auto [argument, scale] = scaledOrSelf(erf.getInput());
    auto negative = argument.getDefiningOp<ir::NegOp>();
    const bool isGelu = negative && negative.getInput() == x && isRootOfHalf(scale);
    return isGelu ? std::optional(Gate{"gelu", 2.0}) : std::nullopt;
  }
  auto shifted = matchShifted(gate);
  if (!shifted || !close(shifted->second, 1.0)) return std::nullopt;
  if (auto erf = shifted->first.getDefiningOp<ir::ErfOp>()) {
    auto [argument, scale] = scaledOrSelf(erf.getInput());
    if (argument == x && isRootOfHalf(scale)) return Gate{"gelu", 2.0};
  }
  if (auto tanh = shifted->first.getDefiningOp<ir::TanhOp>()) {
    if (isTanhArgument(tanh.getInput(), x)) return Gate{"gelu_tanh", 2.0};
  }
  return std::nullopt;
}

// (x * c) * gate(x), in any order and association → activation(x).
struct RaiseProduct : mlir::OpRewritePattern<ir::MulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::MulOp op, PatternRewriter& rewriter) const override {
    // A factor may stand outside of the product: c * (x * gate).
    auto [product, outer] = scaledOrSelf(op.getResult());
    auto mul = product.getDefiningOp<ir::MulOp>();
    if (!mul) return rewriter.notifyMatchFailure(op, "no product");
    for (auto [left, right] : {std::pair<Value, Value>(mul.getLhs(), mul.getRhs()),
                               std::pair<Value, Value>(mul.getRhs(), mul.getLhs())}) {
      auto [gateValue, rightFactor] = scaledOrSelf(right);
      // The factor may be part of the left side, or of what x is.
      for (auto [x, leftFactor] : {std::pair<Value, double>(left, 1.0), scaledOrSelf(left)}) {
        std::optional<Gate> gate = matchGate(gateValue, x);
        if (!gate || !close(outer * leftFactor * rightFactor * gate->factor, 1.0)) continue;
        rewriter.replaceOpWithNewOp<ir::ActivationOp>(op, x, gate->kind);
        return success();
      }
    }
    return rewriter.notifyMatchFailure(op, "no gate of a known activation");
  }
};

// activation(g) * u → gated_activation(g, u).
struct RaiseGated : mlir::OpRewritePattern<ir::MulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::MulOp op, PatternRewriter& rewriter) const override {
    auto isActivation = [](Value value) {
      auto activation = value.getDefiningOp<ir::ActivationOp>();
      return activation && activation->hasOneUse();
    };
    auto match = matchEither<ir::MulOp>(op.getResult(), isActivation);
    if (!match || match->second.getType() != op.getType() ||
        match->first.getType() != op.getType()) {
      return rewriter.notifyMatchFailure(op, "no activation times a value of its shape");
    }
    auto activation = match->first.getDefiningOp<ir::ActivationOp>();
    rewriter.replaceOpWithNewOp<ir::GatedActivationOp>(op, activation.getInput(), match->second,
                                                       activation.getKind());
    return success();
  }
};

struct RaiseActivation : impl::RaiseActivationBase<RaiseActivation> {
  void runOnOperation() override {
    mlir::RewritePatternSet patterns(&getContext());
    patterns.add<RaiseGated, RaiseProduct>(&getContext());
    if (failed(applyRaise(getOperation(), std::move(patterns)))) signalPassFailure();
  }
};

}  // namespace
}  // namespace oriel
