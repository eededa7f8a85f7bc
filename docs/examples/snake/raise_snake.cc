// acme-raise-snake: an exporter knows no snake and writes x + sin²(αx)/α as five nodes. Made one op
// again, they take one kernel, and keep x and α for the backward instead of all that is in between.
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "passes/raise/match.h"
#include "snake.h"

namespace {

using mlir::Value;
namespace ir = oriel::ir;

// α where the value is sin²(αx)/α.
Value matchWave(Value value, Value x) {
  auto quotient = value.getDefiningOp<ir::DivOp>();
  if (!quotient) return {};
  Value square = oriel::matchSquare(quotient.getLhs());
  auto sine = square ? square.getDefiningOp<ir::SinOp>() : nullptr;
  if (!sine) return {};
  auto product =
      oriel::matchEither<ir::MulOp>(sine.getInput(), [&](Value factor) { return factor == x; });
  return product && product->second == quotient.getRhs() ? product->second : Value();
}

struct SnakePattern : mlir::OpRewritePattern<ir::AddOp> {
  using OpRewritePattern::OpRewritePattern;

  mlir::LogicalResult matchAndRewrite(ir::AddOp op,
                                      mlir::PatternRewriter& rewriter) const override {
    for (auto [x, wave] : {std::pair<Value, Value>(op.getLhs(), op.getRhs()),
                           std::pair<Value, Value>(op.getRhs(), op.getLhs())}) {
      Value alpha = matchWave(wave, x);
      if (!alpha) continue;
      auto type = oriel::tensorType(x);
      if (type.getRank() == 0 ||
          alpha.getType() !=
              mlir::RankedTensorType::get({type.getShape().back()}, type.getElementType())) {
        return rewriter.notifyMatchFailure(op, "α is not one for each channel");
      }
      rewriter.replaceOpWithNewOp<acme::SnakeOp>(op, x, alpha);
      return mlir::success();
    }
    return rewriter.notifyMatchFailure(op, "no x + sin²(αx)/α");
  }
};

struct RaiseSnake : mlir::PassWrapper<RaiseSnake, mlir::OperationPass<mlir::func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RaiseSnake)

  llvm::StringRef getArgument() const override { return "acme-raise-snake"; }
  llvm::StringRef getDescription() const override { return "Recognises x + sin²(αx)/α"; }
  void getDependentDialects(mlir::DialectRegistry& registry) const override {
    registry.insert<acme::AcmeDialect>();
  }

  void runOnOperation() override {
    mlir::RewritePatternSet patterns(&getContext());
    patterns.add<SnakePattern>(&getContext());
    if (failed(oriel::applyRaise(getOperation(), std::move(patterns)))) signalPassFailure();
  }
};

}  // namespace

void acme::registerRaiseSnake() { mlir::PassRegistration<RaiseSnake>(); }
