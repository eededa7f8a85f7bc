#include <optional>

#include "passes/train/passes.h"
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
    if (!given) {
      absl::StatusOr<Recipe> read = readRecipe(recipe);
      if (!read.ok()) {
        module.emitError(std::string(read.status().message()));
        return signalPassFailure();
      }
      given = *std::move(read);
    }
    if (failed(buildTrainingProgram(module, *given))) signalPassFailure();
  }

  std::optional<Recipe> given;
};

}  // namespace

std::unique_ptr<mlir::Pass> createTrain(Recipe recipe) {
  return std::make_unique<Train>(std::move(recipe));
}

}  // namespace oriel
