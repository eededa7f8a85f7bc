#include "passes/raise/match.h"
#include "passes/raise/passes.h"

namespace oriel {

#define GEN_PASS_DEF_RAISEMERGE
#include "passes/raise/passes.h.inc"

namespace {

using mlir::LogicalResult;
using mlir::PatternRewriter;
using mlir::success;
using mlir::Value;

// A value of shape `[b, s]` that the mask `[b, s, d]` repeats along d.
Value matchRowMask(Value mask) {
  auto broadcast = mask.getDefiningOp<ir::BroadcastOp>();
  if (!broadcast) return Value();
  llvm::ArrayRef<int64_t> from = shapeOf(broadcast.getInput());
  llvm::ArrayRef<int64_t> to = shapeOf(mask);
  if (from.size() != 3 || from[2] != 1 || from.take_front(2) != to.take_front(2)) return Value();
  auto reshape = broadcast.getInput().getDefiningOp<ir::ReshapeOp>();
  if (!reshape || shapeOf(reshape.getInput()) != to.take_front(2)) return Value();
  return reshape.getInput();
}

struct MergePerSample : mlir::OpRewritePattern<ir::MaskedScatterOp> {
  MergePerSample(mlir::MLIRContext* context, int64_t rows)
      : OpRewritePattern(context), rows_(rows) {}

  LogicalResult matchAndRewrite(ir::MaskedScatterOp op, PatternRewriter& rewriter) const override {
    mlir::RankedTensorType type = tensorType(op.getInput());
    if (type.getRank() != 3) return rewriter.notifyMatchFailure(op, "no [b, s, d] input");
    Value mask = matchRowMask(op.getMask());
    if (!mask) return rewriter.notifyMatchFailure(op, "the mask does not choose whole rows");
    llvm::SmallVector<int64_t> perSample = {type.getDimSize(0), rows_, type.getDimSize(2)};
    mlir::RankedTensorType featuresType = type.clone(perSample);
    if (tensorType(op.getSource()).getNumElements() != featuresType.getNumElements()) {
      return rewriter.notifyMatchFailure(op, "the source does not have the declared rows");
    }
    Value features = op.getSource();
    if (features.getType() != featuresType) {
      features = ir::ReshapeOp::create(rewriter, op.getLoc(), featuresType, features);
    }
    rewriter.replaceOpWithNewOp<ir::MergeFeaturesOp>(op, op.getInput(), mask, features);
    return success();
  }

 private:
  int64_t rows_;
};

// Why a scatter stayed one although `rows` of features per sample are declared.
mlir::LogicalResult explain(ir::MaskedScatterOp op, int64_t rows) {
  mlir::RankedTensorType type = tensorType(op.getInput()), source = tensorType(op.getSource());
  if (type.getRank() != 3 || !matchRowMask(op.getMask())) {
    op.emitWarning(
        "the merge of image features is not split over the batch: it does not replace "
        "whole rows of an input [batch, positions, width] but elements of ")
        << type;
    return success();
  }
  mlir::InFlightDiagnostic diagnostic = op.emitError("the merge of image features takes ");
  int64_t size = type.getDimSize(0) * type.getDimSize(2);
  if (size != 0 && source.getNumElements() % size == 0) {
    diagnostic << source.getNumElements() / size << " rows for each of the " << type.getDimSize(0)
               << " samples";
  } else {
    diagnostic << "a source " << source;
  }
  diagnostic << ", but the recipe's `images` declares " << rows
             << " (per_sample x rows_per_image); correct `images`";
  return diagnostic;
}

struct RaiseMerge : impl::RaiseMergeBase<RaiseMerge> {
  using RaiseMergeBase::RaiseMergeBase;

  void runOnOperation() override {
    int64_t rows = rowsPerSample;
    if (rows > 0) {
      mlir::RewritePatternSet patterns(&getContext());
      patterns.add<MergePerSample>(&getContext(), rows);
      if (failed(applyRaise(getOperation(), std::move(patterns)))) return signalPassFailure();
    }
    getOperation().walk([&](ir::MaskedScatterOp op) {
      if (rows > 0) {
        if (failed(explain(op, rows))) signalPassFailure();
        return;
      }
      op.emitWarning(
          "the merge of image features is not split over the batch: declare `images: {per_sample, "
          "rows_per_image}` in the recipe");
    });
  }
};

}  // namespace
}  // namespace oriel
