#include "ir/oriel/builders.h"
#include "mlir/IR/Matchers.h"
#include "passes/raise/match.h"
#include "passes/raise/passes.h"

namespace oriel {

#define GEN_PASS_DEF_RAISECHOICE
#include "passes/raise/passes.h.inc"

namespace {

using mlir::LogicalResult;
using mlir::PatternRewriter;
using mlir::success;
using mlir::Value;

// What is there where a condition is true, and 0 elsewhere.
struct Part {
  Value condition, value;
};

std::optional<Part> matchPart(Value value) {
  auto isNumber = [](Value operand) { return matchNumberOfBoolean(operand) != Value(); };
  auto match = matchEither<ir::MulOp>(value, isNumber);
  if (!match) return std::nullopt;
  return Part{matchNumberOfBoolean(match->first), match->second};
}

bool isNotOf(Value value, Value condition) {
  auto op = value.getDefiningOp<ir::NotOp>();
  return op && op.getInput() == condition;
}

// x number(c) + y number(not c) → c ? x : y.
struct SelectOfParts : mlir::OpRewritePattern<ir::AddOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::AddOp op, PatternRewriter& rewriter) const override {
    std::optional<Part> left = matchPart(op.getLhs()), right = matchPart(op.getRhs());
    if (!left || !right) return rewriter.notifyMatchFailure(op, "no products with booleans");
    if (isNotOf(left->condition, right->condition)) std::swap(left, right);
    if (!isNotOf(right->condition, left->condition)) {
      return rewriter.notifyMatchFailure(op, "the booleans are no opposites");
    }
    rewriter.replaceOpWithNewOp<ir::SelectOp>(op, left->condition, left->value, right->value);
    return success();
  }
};

// A table of ones and zeros where another, of the same shape, has zeros and one number.
struct Tables {
  mlir::DenseElementsAttr shown;
  double hidden;
};
std::optional<Tables> matchTables(mlir::DenseElementsAttr ones, mlir::DenseElementsAttr added) {
  if (ones.getType() != added.getType() || ones.isSplat() || added.isSplat() ||
      !llvm::isa<mlir::FloatType>(ones.getElementType())) {
    return std::nullopt;
  }
  llvm::SmallVector<bool> shown;
  std::optional<llvm::APFloat> hidden;
  for (auto [one, number] :
       llvm::zip_equal(ones.getValues<llvm::APFloat>(), added.getValues<llvm::APFloat>())) {
    const bool isShown = one.isExactlyValue(1.0);
    if (isShown ? !number.isZero() : !one.isZero()) return std::nullopt;
    if (!isShown && !hidden) hidden = number;
    if (!isShown && *hidden != number) return std::nullopt;
    shown.push_back(isShown);
  }
  auto type = ones.getType().clone(mlir::IntegerType::get(ones.getContext(), 1));
  return Tables{mlir::DenseElementsAttr::get(llvm::cast<mlir::ShapedType>(type), shown),
                hidden->convertToDouble()};
}

// The same with tables that are known: x [1, 0, ..] + [0, low, ..] → [true, false, ..] ? x : low.
struct SelectOfTables : mlir::OpRewritePattern<ir::AddOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::AddOp op, PatternRewriter& rewriter) const override {
    mlir::DenseElementsAttr ones, added;
    auto isTable = [&](mlir::DenseElementsAttr& table) {
      return [&table](Value value) { return mlir::matchPattern(value, mlir::m_Constant(&table)); };
    };
    auto sum = matchEither<ir::AddOp>(op.getResult(), isTable(added));
    auto product =
        sum ? matchEither<ir::MulOp>(sum->second, isTable(ones)) : decltype(sum)(std::nullopt);
    if (!product) return rewriter.notifyMatchFailure(op, "no product and sum with tables");
    std::optional<Tables> tables = matchTables(ones, added);
    if (!tables) return rewriter.notifyMatchFailure(op, "the tables are no opposites");
    mlir::Location loc = op.getLoc();
    Value shown = ir::ConstantOp::create(rewriter, loc, tables->shown);
    Value hidden = ir::scalarConstant(rewriter, loc, tables->hidden, op);
    rewriter.replaceOpWithNewOp<ir::SelectOp>(op, shown, product->second, hidden);
    return success();
  }
};

// c and true → c.
struct AndTrue : mlir::OpRewritePattern<ir::AndOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::AndOp op, PatternRewriter& rewriter) const override {
    auto isTrue = [](Value value) {
      mlir::DenseElementsAttr table;
      return mlir::matchPattern(value, mlir::m_Constant(&table)) && table.isSplat() &&
             table.getSplatValue<bool>();
    };
    auto match = matchEither<ir::AndOp>(op.getResult(), isTrue);
    if (!match) return rewriter.notifyMatchFailure(op, "no operand is true");
    if (match->second.getType() == op.getType()) {
      rewriter.replaceOp(op, match->second);
    } else {
      rewriter.replaceOpWithNewOp<ir::BroadcastOp>(op, op.getType(), match->second);
    }
    return success();
  }
};

struct RaiseChoice : impl::RaiseChoiceBase<RaiseChoice> {
  void runOnOperation() override {
    mlir::RewritePatternSet patterns(&getContext());
    patterns.add<SelectOfParts, SelectOfTables, AndTrue>(&getContext());
    if (failed(applyRaise(getOperation(), std::move(patterns)))) signalPassFailure();
  }
};

}  // namespace
}  // namespace oriel
