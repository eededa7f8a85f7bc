#include "passes/raise/images.h"
#include "passes/raise/match.h"
#include "passes/raise/passes.h"

namespace oriel {

#define GEN_PASS_DEF_RAISEMERGE
#include "passes/raise/passes.h.inc"

namespace {

using mlir::failure;
using mlir::LogicalResult;
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

// Fails, and changes nothing, unless the scatter replaces whole rows and has `rows` of features for
// each sample.
LogicalResult mergePerSample(ir::MaskedScatterOp op, int64_t rows, mlir::RewriterBase& rewriter) {
  mlir::RankedTensorType type = tensorType(op.getInput());
  Value mask = type.getRank() == 3 ? matchRowMask(op.getMask()) : Value();
  if (!mask) return failure();
  llvm::SmallVector<int64_t> perSample = {type.getDimSize(0), rows, type.getDimSize(2)};
  mlir::RankedTensorType featuresType = type.clone(perSample);
  if (tensorType(op.getSource()).getNumElements() != featuresType.getNumElements()) {
    return failure();
  }
  rewriter.setInsertionPoint(op);
  Value features = op.getSource();
  if (features.getType() != featuresType) {
    features = ir::ReshapeOp::create(rewriter, op.getLoc(), featuresType, features);
  }
  rewriter.replaceOpWithNewOp<ir::MergeFeaturesOp>(op, op.getInput(), mask, features);
  return success();
}

// Why a scatter stayed one although `rows` of features per sample are declared.
LogicalResult explain(ir::MaskedScatterOp op, int64_t rows) {
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
             << " (per_sample x rows_per_image); correct `images`, or declare the images of each "
                "merge by themselves (a list)";
  return diagnostic;
}

struct RaiseMerge : impl::RaiseMergeBase<RaiseMerge> {
  using RaiseMergeBase::RaiseMergeBase;

  void runOnOperation() override {
    if (failed(checkImages(getOperation(), inputs, {rowsPerSample}))) return signalPassFailure();
    llvm::SmallVector<ir::MaskedScatterOp> scatters;
    getOperation().walk([&](ir::MaskedScatterOp op) { scatters.push_back(op); });
    for (ir::MaskedScatterOp op : scatters) {
      if (failed(run(op))) return signalPassFailure();
    }
  }

 private:
  LogicalResult run(ir::MaskedScatterOp op) {
    mlir::FailureOr<std::optional<size_t>> images = imagesOf(op, op.getSource(), inputs);
    if (failed(images)) return failure();
    if (!*images) {
      op.emitWarning("the merge of image features is not split over the batch: ")
          << (inputs.empty() ? "declare `images: {per_sample, rows_per_image}` in the recipe"
                             : "none of the inputs that the recipe's `images` declares is behind "
                               "it; declare one that is");
      return success();
    }
    const int64_t rows = rowsPerSample[**images];
    mlir::IRRewriter rewriter(&getContext());
    return succeeded(mergePerSample(op, rows, rewriter)) ? success() : explain(op, rows);
  }
};

}  // namespace
}  // namespace oriel
