#include <optional>

#include "ir/oriel/segment_roles.h"
#include "passes/train/passes.h"
#include "passes/train/recipe_option.h"
#include "passes/train/training_program.h"

namespace oriel {

#define GEN_PASS_DEF_TRAIN
#include "passes/train/passes.h.inc"

namespace {

struct Train : impl::TrainBase<Train> {
  using TrainBase::TrainBase;
  Train(Recipe recipe, bool fusesLoss, int64_t ranks) : given(std::move(recipe)) {
    fuseLoss = fusesLoss;
    positionRanks = ranks;
  }

  void runOnOperation() override {
    mlir::ModuleOp module = getOperation();
    if (failed(readRecipeOption(module, recipe, given))) return signalPassFailure();
    // Without @main, or of several blocks, there is an error below.
    mlir::func::FuncOp main = ir::mainOfOneBlock(module);
    if (main && failed(ir::SegmentRoles::read(main))) return signalPassFailure();
    if (failed(buildTrainingProgram(module, *given, fuseLoss, positionRanks)) ||
        failed(ir::checkShardingRules(module))) {
      signalPassFailure();
    }
  }

  std::optional<Recipe> given;
};

}  // namespace

std::unique_ptr<mlir::Pass> createTrain(Recipe recipe, bool fuseLoss, int64_t positionRanks) {
  return std::make_unique<Train>(std::move(recipe), fuseLoss, positionRanks);
}

}  // namespace oriel
