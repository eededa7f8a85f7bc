#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include "passes/stage/part_stages.h"
#include "passes/stage/part_times.h"
#include "passes/stage/parts.h"
#include "passes/stage/passes.h"
#include "passes/strategize/programs.h"
#include "passes/strategize/strategy_pass.h"

namespace oriel {

#define GEN_PASS_DEF_ASSIGNSTAGES
#include "passes/stage/passes.h.inc"

namespace {

using mlir::failure;
using mlir::LogicalResult;
using mlir::success;

class StageAssigner {
 public:
  StageAssigner(mlir::ModuleOp module, mlir::func::FuncOp forward, const Strategy& strategy,
                int64_t microbatches, LaunchForms forms)
      : module_(module),
        forward_(forward),
        strategy_(strategy),
        microbatches_(microbatches),
        model_(findParts(forward, module.lookupSymbol<mlir::func::FuncOp>("backward"), strategy)),
        forms_(forms) {}

  LogicalResult run(llvm::raw_ostream* explain) {
    annotateBlocks(module_, model_);
    auto given = module_->getAttrOfType<mlir::DenseI64ArrayAttr>(kPartStagesAttr);
    const bool isFound = !given && strategy_.stageCount() > 1 && strategy_.pipeline->named.empty();
    if ((isFound || explain) && failed(readTimes())) return failure();
    if (explain) explainParts(*explain);
    if (given) {
      if (failed(readGivenCuts(given))) return failure();
    } else {
      absl::StatusOr<std::vector<int64_t>> stages = stagesOfParts(model_, strategy_, microbatches_);
      if (!stages.ok()) {
        return module_.emitError(std::string(stages.status().message()));
      }
      stageOf_ = *std::move(stages);
    }
    if (explain) explainStages(*explain);
    module_->removeAttr(kPartTimesAttr);
    if (strategy_.stageCount() > 1) annotate();
    return success();
  }

 private:
  LogicalResult readTimes() {
    auto given = module_->getAttrOfType<mlir::DenseF64ArrayAttr>(kPartTimesAttr);
    if (!given) return timeParts(module_, strategy_.rematPolicy(), forms_, &model_);
    if (given.size() != static_cast<int64_t>(model_.parts.size()) * 3) {
      return module_.emitError("'")
             << kPartTimesAttr << "' must have three numbers for each of the "
             << model_.parts.size() << " parts";
    }
    llvm::ArrayRef<double> times = given;
    for (Part& part : model_.parts) {
      part.forward = times[0];
      part.backwardInput = times[1];
      part.backwardWeight = times[2];
      times = times.drop_front(3);
    }
    areOnRank_ = true;
    return success();
  }

  LogicalResult readGivenCuts(llvm::ArrayRef<int64_t> stages) {
    const bool isSound =
        stages.size() == model_.parts.size() &&
        llvm::all_of(stages, [&](int64_t s) { return s >= 0 && s < strategy_.stageCount(); });
    if (!isSound) {
      return module_.emitError("'")
             << kPartStagesAttr << "' must have a stage below " << strategy_.stageCount()
             << " for each of the " << model_.parts.size() << " parts";
    }
    stageOf_.assign(stages.begin(), stages.end());
    return success();
  }

  void annotate() {
    mlir::Builder builder(module_.getContext());
    for (mlir::Operation& op : forward_.getBody().front().without_terminator()) {
      op.setAttr(kStageAttr, builder.getI64IntegerAttr(stageOf_[model_.partOf.lookup(&op)]));
    }
    llvm::SmallVector<std::string> labels;
    for (int64_t stage = 0; stage < strategy_.stageCount(); ++stage) {
      labels.push_back(stageLabel(model_, stageOf_, stage));
    }
    module_->setAttr(kStagesAttr, builder.getStrArrayAttr(llvm::SmallVector<llvm::StringRef>(
                                      labels.begin(), labels.end())));
  }

  static void printTimes(llvm::raw_ostream& out, const Part& part, int64_t ranks) {
    const double scale = 1e3 / static_cast<double>(ranks);
    out << llvm::format("%.4g ms (forward %.4g, backward %.4g for inputs, %.4g for weights)",
                        part.seconds() * scale, part.forward * scale, part.backwardInput * scale,
                        part.backwardWeight * scale);
  }

  void explainParts(llvm::raw_ostream& out) const {
    out << "stage: blocks: " << towersText(model_) << "\n";
    for (const Part& part : model_.parts) {
      out << "stage: part " << part.name << (part.block < 0 ? " (between blocks)" : "") << ": "
          << part.parameters << " parameters, on " << (areOnRank_ ? "a rank " : "one device ");
      printTimes(out, part, 1);
      out << "\n";
    }
  }

  void explainStages(llvm::raw_ostream& out) const {
    for (int64_t stage = 0; stage < strategy_.stageCount(); ++stage) {
      Part sum;
      for (auto [part, own] : llvm::zip_equal(model_.parts, stageOf_)) {
        if (own != stage) continue;
        sum.parameters += part.parameters;
        sum.forward += part.forward;
        sum.backwardInput += part.backwardInput;
        sum.backwardWeight += part.backwardWeight;
      }
      const int64_t grid = stage % strategy_.grids();
      const int64_t ranks = strategy_.meshOfGrid(grid).ranks();
      out << "stage: stage " << stage << " on grid " << grid << ": "
          << stageLabel(model_, stageOf_, stage) << ": " << sum.parameters << " parameters, on "
          << ranks << (ranks == 1 ? " rank " : " ranks ");
      printTimes(out, sum, areOnRank_ ? 1 : ranks);
      out << "\n";
    }
  }

  mlir::ModuleOp module_;
  mlir::func::FuncOp forward_;
  const Strategy& strategy_;
  int64_t microbatches_;
  ModelParts model_;
  LaunchForms forms_;
  bool areOnRank_ = false;        // the parts' times
  std::vector<int64_t> stageOf_;  // by part
};

struct AssignStages : StrategyPass<impl::AssignStagesBase<AssignStages>> {
  using StrategyPass::StrategyPass;
  AssignStages(Strategy strategy, int64_t count, const LaunchForms& forms, bool explained)
      : StrategyPass(std::move(strategy)) {
    microbatches = count;
    explain = explained;
    fused = forms.fused;
    generated = forms.generated;
  }

  void getDependentDialects(mlir::DialectRegistry& registry) const override {
    AssignStagesBase::getDependentDialects(registry);
    registerLaunchDialects(registry);
  }

  mlir::LogicalResult run(mlir::ModuleOp module, const Strategy& strategy) override {
    auto forward = module.lookupSymbol<mlir::func::FuncOp>("forward");
    if (!forward) {
      return module.emitError("has no segment @forward: run the train phase first");
    }
    StageAssigner assigner(module, forward, strategy, microbatches, {fused, generated});
    return assigner.run(explain ? &llvm::errs() : nullptr);
  }
};

}  // namespace

std::unique_ptr<mlir::Pass> createAssignStages(Strategy strategy, int64_t microbatches,
                                               const LaunchForms& forms, bool explain) {
  return std::make_unique<AssignStages>(std::move(strategy), microbatches, forms, explain);
}

}  // namespace oriel
