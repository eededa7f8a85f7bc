#include "ir/oriel/folding.h"
#include "mlir/IR/Matchers.h"
#include "passes/raise/affine_index.h"
#include "passes/raise/match.h"
#include "passes/raise/passes.h"

namespace oriel {

#define GEN_PASS_DEF_RAISEPOSITIONS
#include "passes/raise/passes.h.inc"

namespace {

using mlir::LogicalResult;
using mlir::PatternRewriter;
using mlir::success;
using mlir::Value;

// The smallest and the largest of lhs - rhs.
using Range = std::pair<int64_t, int64_t>;

// What the comparison is of all elements; nothing if it is not the same of all.
std::optional<bool> ofAll(ir::EqualOp, Range range) {
  if (range == Range(0, 0)) return true;
  return range.first > 0 || range.second < 0 ? std::optional(false) : std::nullopt;
}
// Of differences up to `bound`.
std::optional<bool> isUpTo(Range range, int64_t bound) {
  if (range.second <= bound) return true;
  return range.first > bound ? std::optional(false) : std::nullopt;
}
std::optional<bool> ofAll(ir::LessOp, Range range) { return isUpTo(range, -1); }
std::optional<bool> ofAll(ir::LessEqualOp, Range range) { return isUpTo(range, 0); }
// Of what is true where another comparison is false.
std::optional<bool> opposite(std::optional<bool> ofOther) {
  return ofOther ? std::optional(!*ofOther) : std::nullopt;
}
std::optional<bool> ofAll(ir::GreaterOp, Range range) { return opposite(isUpTo(range, 0)); }
std::optional<bool> ofAll(ir::GreaterEqualOp, Range range) { return opposite(isUpTo(range, -1)); }

// i < i + 1 → true
template <typename Op>
struct ComparePositions : mlir::OpRewritePattern<Op> {
  using mlir::OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op, PatternRewriter& rewriter) const override {
    const llvm::ArrayRef<int64_t> shape = op.getType().getShape();
    if (ir::elementCount(shape) == 0) return rewriter.notifyMatchFailure(op, "has no elements");
    std::optional<AffineIndex> difference =
        matchAffineDifference(op.getLhs(), op.getRhs(), op.getType().getRank());
    if (!difference) return rewriter.notifyMatchFailure(op, "does not compare positions");
    std::optional<bool> all = ofAll(op, rangeOf(*difference, shape));
    if (!all) return rewriter.notifyMatchFailure(op, "is true of some only");
    rewriter.replaceOpWithNewOp<ir::ConstantOp>(op,
                                                mlir::DenseElementsAttr::get(op.getType(), *all));
    return success();
  }
};

// gather([0, 0, ..], i) → [0, ..]
struct GatherOfEqualRows : mlir::OpRewritePattern<ir::GatherOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::GatherOp op, PatternRewriter& rewriter) const override {
    mlir::DenseElementsAttr table;
    if (!mlir::matchPattern(op.getInput(), mlir::m_Constant(&table)) || !table.isSplat() ||
        ir::elementCount(op.getType().getShape()) == 0 || op.getFirst()) {
      return rewriter.notifyMatchFailure(op, "its rows are not known to be equal");
    }
    std::optional<AffineIndex> indices = matchAffineIndex(op.getIndices());
    if (!indices) return rewriter.notifyMatchFailure(op, "its indices are not known");
    const auto [least, most] = rangeOf(*indices, shapeOf(op.getIndices()));
    const int64_t rows = shapeOf(op.getInput())[op.getDim()];
    if (least < -rows || most >= rows)
      return rewriter.notifyMatchFailure(op, "some rows are missing");
    rewriter.replaceOpWithNewOp<ir::ConstantOp>(op, table.resizeSplat(op.getType()));
    return success();
  }
};

struct RaisePositions : impl::RaisePositionsBase<RaisePositions> {
  void runOnOperation() override {
    mlir::RewritePatternSet patterns(&getContext());
    patterns.add<ComparePositions<ir::EqualOp>, ComparePositions<ir::GreaterEqualOp>,
                 ComparePositions<ir::GreaterOp>, ComparePositions<ir::LessEqualOp>,
                 ComparePositions<ir::LessOp>, GatherOfEqualRows>(&getContext());
    if (failed(applyRaise(getOperation(), std::move(patterns)))) signalPassFailure();
  }
};

}  // namespace
}  // namespace oriel
