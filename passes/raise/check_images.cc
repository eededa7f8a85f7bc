#include "ir/oriel/segment.h"
#include "passes/raise/images.h"
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

struct CheckImages : impl::CheckImagesBase<CheckImages> {
  using CheckImagesBase::CheckImagesBase;

  void runOnOperation() override {
    main_ = getOperation().lookupSymbol<mlir::func::FuncOp>("main");
    if (inputs.empty() || !main_) return;
    if (failed(checkImages(main_, inputs, {perSample, rowsPerImage})) || failed(run())) {
      signalPassFailure();
    }
  }

 private:
  // Those of all merges whose features come from the same declared input.
  struct Kind {
    size_t number = 0;  // in the options
    std::string count;  // the input that is added
    llvm::SmallVector<ir::MergeFeaturesOp> merges;
  };

  LogicalResult run() {
    llvm::SmallVector<Kind> kinds(inputs.size());
    llvm::SmallVector<Value> others;
    int64_t samples = 0;
    auto addMerge = [&](ir::MergeFeaturesOp merge) -> LogicalResult {
      FailureOr<std::optional<size_t>> images = imagesOf(merge, merge.getFeatures(), inputs);
      if (failed(images)) return failure();
      if (*images) kinds[**images].merges.push_back(merge);
      others.append({merge.getInput(), merge.getMask()});
      samples = tensorType(merge.getInput()).getDimSize(0);
      return success();
    };
    mlir::WalkResult walked = main_.walk([&](ir::MergeFeaturesOp merge) {
      return succeeded(addMerge(merge)) ? mlir::WalkResult::advance()
                                        : mlir::WalkResult::interrupt();
    });
    if (walked.wasInterrupted()) return failure();
    ofText_ = argumentsBehind(others);
    for (size_t i = 0; i < kinds.size(); ++i) {
      kinds[i].number = i;
      FailureOr<std::string> count = countName(inputs[i]);
      if (failed(count)) return failure();
      kinds[i].count = *count;
      if (kinds[i].merges.empty()) {
        warnOfNoMerge(inputs[i]);
      } else if (failed(addCount(kinds[i], samples))) {
        return failure();
      }
    }
    if (images_.empty()) return success();
    getOperation()->setAttr(ir::kImagesAttr, mlir::ArrayAttr::get(&getContext(), images_));
    return success();
  }

  // Where there is a scatter, raise-merge has said why it is no merge.
  void warnOfNoMerge(llvm::StringRef input) {
    bool hasScatter = false;
    main_.walk([&](ir::MaskedScatterOp) { hasScatter = true; });
    if (hasScatter) return;
    mlir::InFlightDiagnostic warning = main_.emitWarning("the recipe declares `images`");
    if (input != kAnyInput) warning << " of the input '" << input << "'";
    warning << ", but the model puts no features of images into its text (no masked scatter): the "
               "number of images is not checked, and each sample must bring all that the inputs "
               "hold; remove `images`";
  }

  // Of no other input of the model.
  FailureOr<std::string> countName(llvm::StringRef input) {
    FailureOr<std::vector<std::string>> taken = ir::inputNames(main_);
    if (failed(taken)) return failure();
    std::string name = input == kAnyInput ? "image_count" : (input + "_count").str();
    while (llvm::is_contained(*taken, name)) name += "_count";
    return name;
  }

  LogicalResult addCount(const Kind& kind, int64_t samples) {
    llvm::SmallVector<Value> features;
    for (ir::MergeFeaturesOp merge : kind.merges) features.push_back(merge.getFeatures());
    llvm::SmallPtrSet<Value, 8> ofImages = argumentsBehind(features);
    mlir::Builder builder(&getContext());
    mlir::NamedAttrList rows;
    for (mlir::BlockArgument argument : main_.getArguments()) {
      FailureOr<ir::ValueRole> role = ir::argumentRole(main_, argument.getArgNumber());
      if (failed(role)) return failure();
      if (role->kind != ir::ValueKind::kInput) continue;
      if (!ofImages.contains(argument) || ofText_.contains(argument)) continue;
      if (!counted_.insert(argument).second) {
        return main_.emitError("the input '")
               << role->ref << "' is behind the features of images of several kinds; the recipe's "
               << "`images` can't declare both: keep one of them";
      }
      FailureOr<int64_t> size = rowsOf(argument, role->ref, samples, perSample[kind.number]);
      if (failed(size)) return failure();
      rows.append(role->ref, builder.getI64IntegerAttr(*size));
    }
    const std::string& declared = inputs[kind.number];
    if (declared != kAnyInput && !rows.get(declared)) {
      main_.emitWarning("the input '")
          << declared << "', of which the recipe declares `images`, reaches the text by another "
          << "way than a merge that is split over the batch: its images are not counted";
      return success();
    }
    if (rows.empty()) return success();  // features of the model's own: there is nothing to count

    auto countType = mlir::RankedTensorType::get({samples}, builder.getI64Type());
    mlir::Location location = mlir::NameLoc::get(builder.getStringAttr(kind.count));
    unsigned index = main_.getNumArguments();
    mlir::DictionaryAttr role =
        ir::roleAttributes(&getContext(), {ir::ValueKind::kInput, kind.count, ""});
    if (failed(main_.insertArgument(index, countType, role, location))) return failure();
    for (ir::MergeFeaturesOp merge : kind.merges) {
      mlir::OpBuilder before(merge);
      Value checked =
          ir::CheckImageSlotsOp::create(before, merge.getLoc(), merge.getMask(),
                                        main_.getArgument(index), rowsPerImage[kind.number]);
      merge.getMaskMutable().assign(checked);
    }
    images_.push_back(builder.getDictionaryAttr({
        builder.getNamedAttr("count", builder.getStringAttr(kind.count)),
        builder.getNamedAttr("per_sample", builder.getI64IntegerAttr(perSample[kind.number])),
        builder.getNamedAttr("rows", rows.getDictionary(&getContext())),
    }));
    return success();
  }

  // Rows of an input that one image takes: those of its first dimension, [samples * images * rows,
  // ..], or of its second, [samples, images * rows, ..].
  FailureOr<int64_t> rowsOf(mlir::BlockArgument argument, const std::string& name, int64_t samples,
                            int64_t images) {
    llvm::ArrayRef<int64_t> shape = shapeOf(argument);
    if (!shape.empty() && shape[0] > 0 && shape[0] % (samples * images) == 0) {
      return shape[0] / (samples * images);
    }
    if (shape.size() > 1 && shape[0] == samples && shape[1] > 0 && shape[1] % images == 0) {
      return shape[1] / images;
    }
    return main_.emitError("the input '")
           << name << "' holds images, but " << argument.getType() << " can't be divided into "
           << images << " for each of " << samples
           << " samples; correct `images.per_sample` or `model.bind` in the recipe";
  }

  mlir::func::FuncOp main_;
  llvm::SmallPtrSet<Value, 8> ofText_, counted_;  // arguments
  llvm::SmallVector<mlir::Attribute> images_;     // of `oriel.images`
};

}  // namespace
}  // namespace oriel
