#include "ir/oriel/segment.h"
#include "passes/raise/match.h"
#include "passes/raise/passes.h"

namespace oriel {

#define GEN_PASS_DEF_CHECKIMAGES
#include "passes/raise/passes.h.inc"

namespace {

using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::success;
using mlir::Value;

// Arguments of the function that `roots` depend on, other than by the image features of a merge.
llvm::SmallPtrSet<Value, 8> argumentsBehind(llvm::ArrayRef<Value> roots) {
  llvm::SmallPtrSet<Value, 8> arguments;
  llvm::SmallPtrSet<Value, 32> seen;
  llvm::SmallVector<Value> work(roots);
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (!seen.insert(value).second) continue;
    mlir::Operation* op = value.getDefiningOp();
    if (!op) {
      arguments.insert(value);
    } else if (auto merge = llvm::dyn_cast<ir::MergeFeaturesOp>(op)) {
      work.push_back(merge.getInput());
      work.push_back(merge.getMask());
    } else {
      work.append(op->operand_begin(), op->operand_end());
    }
  }
  return arguments;
}

struct CheckImages : impl::CheckImagesBase<CheckImages> {
  using CheckImagesBase::CheckImagesBase;

  void runOnOperation() override {
    main_ = getOperation().lookupSymbol<mlir::func::FuncOp>("main");
    if (perSample <= 0 || !main_) return;
    llvm::SmallVector<ir::MergeFeaturesOp> merges;
    main_.walk([&](ir::MergeFeaturesOp op) { merges.push_back(op); });
    if (merges.empty()) return warnOfNoMerge();
    if (failed(run(merges))) signalPassFailure();
  }

 private:
  // Where there is a scatter, raise-merge has said why it is no merge.
  void warnOfNoMerge() {
    bool hasScatter = false;
    main_.walk([&](ir::MaskedScatterOp) { hasScatter = true; });
    if (hasScatter) return;
    main_.emitWarning(
        "the recipe declares `images`, but the model puts no features of images into its text (no "
        "masked scatter): the number of images is not checked, and each sample must bring all that "
        "the inputs hold; remove `images`");
  }

  LogicalResult run(llvm::ArrayRef<ir::MergeFeaturesOp> merges) {
    llvm::SmallVector<Value> features, others;
    for (ir::MergeFeaturesOp merge : merges) {
      features.push_back(merge.getFeatures());
      others.push_back(merge.getInput());
      others.push_back(merge.getMask());
    }
    llvm::SmallPtrSet<Value, 8> ofImages = argumentsBehind(features);
    llvm::SmallPtrSet<Value, 8> ofText = argumentsBehind(others);
    int64_t samples = tensorType(others.front()).getDimSize(0);

    mlir::Builder builder(&getContext());
    mlir::NamedAttrList rows;
    std::string count = "image_count";
    for (mlir::BlockArgument argument : main_.getArguments()) {
      FailureOr<ir::ValueRole> role = ir::argumentRole(main_, argument.getArgNumber());
      if (failed(role)) return failure();
      if (role->kind != ir::ValueKind::kInput) continue;
      if (role->ref == count) count += "_";
      if (!ofImages.contains(argument) || ofText.contains(argument)) continue;
      FailureOr<int64_t> size = rowsOf(argument, role->ref, samples);
      if (failed(size)) return failure();
      rows.append(role->ref, builder.getI64IntegerAttr(*size));
    }
    if (rows.empty()) return success();  // features of the model's own: there is nothing to count

    auto countType = mlir::RankedTensorType::get({samples}, builder.getI64Type());
    mlir::Location location = mlir::NameLoc::get(builder.getStringAttr(count));
    unsigned index = main_.getNumArguments();
    mlir::DictionaryAttr role =
        ir::roleAttributes(&getContext(), {ir::ValueKind::kInput, count, ""});
    if (failed(main_.insertArgument(index, countType, role, location))) return failure();
    for (ir::MergeFeaturesOp merge : merges) {
      mlir::OpBuilder before(merge);
      Value checked = ir::CheckImageSlotsOp::create(before, merge.getLoc(), merge.getMask(),
                                                    main_.getArgument(index), rowsPerImage);
      merge.getMaskMutable().assign(checked);
    }
    getOperation()->setAttr(
        "oriel.images",
        builder.getDictionaryAttr({
            builder.getNamedAttr("count", builder.getStringAttr(count)),
            builder.getNamedAttr("per_sample", builder.getI64IntegerAttr(perSample)),
            builder.getNamedAttr("rows", rows.getDictionary(&getContext())),
        }));
    return success();
  }

  // Rows of an input that one image takes: those of its first dimension, [samples * images * rows,
  // ..], or of its second, [samples, images * rows, ..].
  FailureOr<int64_t> rowsOf(mlir::BlockArgument argument, const std::string& name,
                            int64_t samples) {
    llvm::ArrayRef<int64_t> shape = shapeOf(argument);
    if (!shape.empty() && shape[0] > 0 && shape[0] % (samples * perSample) == 0) {
      return shape[0] / (samples * perSample);
    }
    if (shape.size() > 1 && shape[0] == samples && shape[1] > 0 && shape[1] % perSample == 0) {
      return shape[1] / perSample;
    }
    return main_.emitError("the input '")
           << name << "' holds images, but " << argument.getType() << " can't be divided into "
           << perSample.getValue() << " for each of " << samples
           << " samples; correct `images.per_sample` or `model.bind` in the recipe";
  }

  mlir::func::FuncOp main_;
};

}  // namespace
}  // namespace oriel
