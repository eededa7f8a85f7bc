#include "driver/part_times.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "passes/stage/part_times.h"

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
  // The compilation itself says what is wrong or worth a warning.
  mlir::ScopedDiagnosticHandler quiet(module.getContext(),
                                      [](mlir::Diagnostic&) { return mlir::success(); });
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

std::vector<Part> partsOnRank(mlir::ModuleOp module, const PipelineOptions& options) {
  ModelParts model =
      findParts(module.lookupSymbol<mlir::func::FuncOp>("forward"),
                module.lookupSymbol<mlir::func::FuncOp>("backward"), options.strategy);
  const PipelineOptions whole = withoutStages(options);
  mlir::OwningOpRef<mlir::ModuleOp> program(module.clone());
  if (succeeded(compileProgram(*program, whole)) &&
      succeeded(timeProgram(*program, options.kernels.launches, &model))) {
    return model.parts;
  }
  for (Part& part : model.parts) part.forward = part.backwardInput = part.backwardWeight = 0;
  if (failed(timeParts(module, whole.strategy.rematPolicy(), options.kernels.launches, &model))) {
    return model.parts;
  }
  const auto ranks = static_cast<double>(whole.strategy.ranks());
  for (Part& part : model.parts) {
    part.forward /= ranks;
    part.backwardInput /= ranks;
    part.backwardWeight /= ranks;
  }
  return model.parts;
}

void timePartsForCuts(mlir::ModuleOp module, const PipelineOptions& options) {
  const Strategy& strategy = options.strategy;
  if (strategy.stageCount() == 1 || !strategy.pipeline->named.empty()) return;
  llvm::SmallVector<double> times;
  for (const Part& part : partsOnRank(module, options)) {
    times.append({part.forward, part.backwardInput, part.backwardWeight});
  }
  module->setAttr(kPartTimesAttr, mlir::DenseF64ArrayAttr::get(module.getContext(), times));
}

}  // namespace oriel::driver
