#include <optional>

#include "passes/train/passes.h"
#include "passes/train/recipe_option.h"
#include "passes/train/training_program.h"

namespace oriel {

#define GEN_PASS_DEF_TRAIN
#include "passes/train/passes.h.inc"

namespace {

struct Train : impl::TrainBase<Train> {
  using TrainBase::TrainBase;
  explicit Train(Recipe recipe) : given(std::move(recipe)) {}

  void runOnOperation() override {
    mlir::ModuleOp module = getOperation();
    if (failed(readRecipeOption(module, recipe, given))) return signalPassFailure();
    if (failed(buildTrainingProgram(module, *given))) signalPassFailure();
  }

  std::optional<Recipe> given;
};

}  // namespace

std::unique_ptr<mlir::Pass> createTrain(Recipe recipe) {
  return std::make_unique<Train>(std::move(recipe));
}

}  // namespace oriel
