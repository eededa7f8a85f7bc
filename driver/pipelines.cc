#include "driver/pipelines.h"

#include "frontend/specialize.h"
#include "ir/exec/exec.h"
#include "ir/oriel/oriel.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/Passes.h"
#include "passes/lower/passes.h"
#include "passes/partition/passes.h"
#include "passes/raise/passes.h"
#include "passes/strategize/passes.h"
#include "passes/train/passes.h"

namespace oriel {

namespace {

using mlir::OpPassManager;

void addSpecialize(OpPassManager& passes, const PipelineOptions&) {
  // Folds until nothing folds: shape arithmetic, position and mask tables. Afterwards every
  // tensor is static, which all later passes rely on.
  passes.addPass(createOrielSpecialize());
}

void addRaise(OpPassManager& passes, const PipelineOptions& options) {
  OpPassManager& function = passes.nest<mlir::func::FuncOp>();
  // Before attention: a bias on a projection would stand between it and the heads.
  function.addPass(createRaiseLinear());
  function.addPass(createRaiseNormalization());
  function.addPass(createRaiseActivation());
  // Before attention, which takes query and key as it finds them.
  function.addPass(createRaiseRope());
  function.addPass(createRaiseAttention());
  // After attention, whose patterns expect heads before positions.
  function.addPass(createRaiseLayout());
  RaiseMergeOptions merge;
  if (options.recipe.images) {
    merge.rowsPerSample = options.recipe.images->perSample * options.recipe.images->rowsPerImage;
  }
  function.addPass(createRaiseMerge(merge));
  if (options.recipe.images) {
    // Behind the merges, which are what is checked.
    CheckImagesOptions check;
    check.perSample = options.recipe.images->perSample;
    check.rowsPerImage = options.recipe.images->rowsPerImage;
    passes.addPass(createCheckImages(check));
  }
  // What the patterns left without users goes; equal subexpressions (such as mask tables per
  // layer) become one while there is still one function only.
  passes.addPass(mlir::createCanonicalizerPass());
  passes.addPass(mlir::createCSEPass());
}

void addTrain(OpPassManager& passes, const PipelineOptions& options) {
  passes.addPass(createTrain(options.recipe));
  passes.addPass(createVerifyTrain());
}

void addStrategize(OpPassManager& passes, const PipelineOptions& options) {
  DataParallelOptions dataParallel;
  dataParallel.world = options.strategy.ranks();
  // The driver has checked that it divides.
  dataParallel.microbatches =
      options.recipe.globalBatch / (options.recipe.microBatch * options.strategy.dataParallel());
  passes.addPass(createDataParallel(dataParallel));
}

void addPartition(OpPassManager& passes, const PipelineOptions&) {
  passes.addPass(createReduceGradients());
}

void addLower(OpPassManager& passes, const PipelineOptions&) {
  passes.addPass(createLowerToExec());
}

}  // namespace

const std::vector<Phase>& pipelinePhases() {
  static const auto* phases = new std::vector<Phase>{
      {"specialize", "static shapes, folded shape arithmetic", addSpecialize},
      {"raise", "semantic ops: attention, norms, rotary embedding, image merge", addRaise},
      {"train", "forward, backward, update and eval segments", addTrain},
      {"strategize", "the device grid, and the schedule of a step", addStrategize},
      {"partition", "collectives", addPartition},
      {"lower", "kernels, and buffers in one arena", addLower},
  };
  return *phases;
}

void registerOrielPasses() {
  registerFrontendPasses();
  registerRaisePasses();
  registerTrainPasses();
  registerStrategizePasses();
  registerPartitionPasses();
  registerLowerPasses();
}

void registerOrielDialects(mlir::DialectRegistry& registry) {
  registry.insert<exec::ExecDialect, ir::OrielDialect, mlir::func::FuncDialect>();
}

}  // namespace oriel
