#include "passes/raise/match.h"
#include "passes/raise/passes.h"

namespace oriel {

#define GEN_PASS_DEF_RAISEROPE
#include "passes/raise/passes.h.inc"

namespace {

using mlir::LogicalResult;
using mlir::PatternRewriter;
using mlir::success;
using mlir::Value;

// Whether the value is the half [begin, end) of x along the last dimension.
bool isLastSlice(Value value, Value x, int64_t begin, int64_t end) {
  auto slice = value.getDefiningOp<ir::SliceOp>();
  if (!slice || slice.getInput() != x) return false;
  llvm::ArrayRef<int64_t> shape = tensorType(x).getShape();
  for (auto [dim, size] : llvm::enumerate(shape)) {
    bool last = dim + 1 == shape.size();
    if (slice.getStarts()[dim] != (last ? begin : 0) ||
        slice.getLimits()[dim] != (last ? end : size) || slice.getStrides()[dim] != 1) {
      return false;
    }
  }
  return true;
}

// x where the value is [-x2, x1] for x = [x1, x2].
Value matchRotatedHalves(Value value) {
  auto concat = value.getDefiningOp<ir::ConcatOp>();
  if (!concat || concat.getInputs().size() != 2) return Value();
  int64_t last = tensorType(value).getRank() - 1;
  if (static_cast<int64_t>(concat.getDim()) != last) return Value();
  auto neg = concat.getInputs()[0].getDefiningOp<ir::NegOp>();
  auto first = concat.getInputs()[1].getDefiningOp<ir::SliceOp>();
  if (!neg || !first) return Value();
  Value x = first.getInput();
  int64_t size = tensorType(x).getShape().back();
  if (size % 2 != 0 || !isLastSlice(neg.getInput(), x, size / 2, size) ||
      !isLastSlice(first.getResult(), x, 0, size / 2)) {
    return Value();
  }
  return x;
}

// Whether cos or sin, aligned at the last dimension, spans it whole.
bool isAngleTable(Value table, Value x) {
  mlir::RankedTensorType type = tensorType(table);
  return type.getRank() >= 1 && type.getRank() <= tensorType(x).getRank() &&
         type.getShape().back() == tensorType(x).getShape().back();
}

struct RaiseRotation : mlir::OpRewritePattern<ir::AddOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::AddOp op, PatternRewriter& rewriter) const override {
    for (auto [straight, rotated] : {std::pair<Value, Value>(op.getLhs(), op.getRhs()),
                                     std::pair<Value, Value>(op.getRhs(), op.getLhs())}) {
      auto sine = matchEither<ir::MulOp>(
          rotated, [](Value value) { return static_cast<bool>(matchRotatedHalves(value)); });
      if (!sine) continue;
      Value x = matchRotatedHalves(sine->first);
      auto cosine = matchEither<ir::MulOp>(straight, [&](Value value) { return value == x; });
      if (!cosine || x.getType() != op.getType()) continue;
      if (!isAngleTable(cosine->second, x) || !isAngleTable(sine->second, x)) continue;
      // The op has no cotangents for its tables.
      if (dependsOnParameter(cosine->second) || dependsOnParameter(sine->second)) continue;
      int64_t rank = tensorType(x).getRank();
      Value cos = expandRank(rewriter, op.getLoc(), cosine->second, rank);
      Value sin = expandRank(rewriter, op.getLoc(), sine->second, rank);
      rewriter.replaceOpWithNewOp<ir::RopeOp>(op, x, cos, sin);
      return success();
    }
    return rewriter.notifyMatchFailure(op, "no x * cos + rotated x * sin");
  }
};

struct RaiseRope : impl::RaiseRopeBase<RaiseRope> {
  void runOnOperation() override {
    mlir::RewritePatternSet patterns(&getContext());
    patterns.add<RaiseRotation>(&getContext());
    if (failed(applyRaise(getOperation(), std::move(patterns)))) signalPassFailure();
  }
};

}  // namespace
}  // namespace oriel
