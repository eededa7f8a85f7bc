#include "driver/part_times.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "passes/stage/part_times.h"
#include "passes/strategize/placement_attribute.h"

namespace oriel::driver {

namespace {

// Of all of the model on one grid.
PipelineOptions withoutStages(PipelineOptions options) {
  Strategy& strategy = options.strategy;
  const RematPolicy remat = strategy.rematPolicy();
  strategy.remat = remat == RematPolicy::kAuto ? RematPolicy::kNone : remat;
  strategy.memory.reset();
  strategy.pipeline.reset();
  options.explainStages = false;
  options.explainSharding = false;
  return options;
}

mlir::LogicalResult compileProgram(mlir::ModuleOp module, const PipelineOptions& options) {
  mlir::PassManager passes(module.getContext());
  passes.enableVerifier(false);
  bool isOn = false;
  for (const PipelinePhase& phase : pipelinePhases()) {
    isOn |= phase.name == "stage";
    if (isOn) phase.addPasses(passes, options);
    if (phase.name == "remat") break;
  }
  return passes.run(module);
}

}  // namespace

mlir::LogicalResult timePartsOnRank(mlir::ModuleOp module, const PipelineOptions& options,
                                    ModelParts* model) {
  const PipelineOptions whole = withoutStages(options);
  mlir::OwningOpRef<mlir::ModuleOp> program(module.clone());
  setRankPlaces(*program, whole.strategy.places());
  // The compilation itself says what is wrong or worth a warning.
  mlir::ScopedDiagnosticHandler quiet(module.getContext(),
                                      [](mlir::Diagnostic&) { return mlir::success(); });
  if (failed(compileProgram(*program, whole))) return mlir::failure();
  return timeProgram(*program, options.kernels.launches, model);
}

void timePartsForCuts(mlir::ModuleOp module, const PipelineOptions& options) {
  const Strategy& strategy = options.strategy;
  if (strategy.stageCount() == 1 || !strategy.pipeline->named.empty() ||
      strategy.pipeline->balance != Pipeline::Balance::kTime) {
    return;
  }
  ModelParts model = findParts(module.lookupSymbol<mlir::func::FuncOp>("forward"),
                               module.lookupSymbol<mlir::func::FuncOp>("backward"), strategy);
  if (failed(timePartsOnRank(module, options, &model))) return;
  llvm::SmallVector<double> times;
  for (const Part& part : model.parts) {
    times.append({part.forward, part.backwardInput, part.backwardWeight});
  }
  module->setAttr(kPartTimesAttr, mlir::DenseF64ArrayAttr::get(module.getContext(), times));
}

}  // namespace oriel::driver
