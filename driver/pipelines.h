// The phases of a compilation, in order, and the passes that each is made of.
#ifndef ORIEL_DRIVER_PIPELINES_H_
#define ORIEL_DRIVER_PIPELINES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "driver/kernel_forms.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/PassManager.h"
#include "passes/strategy/strategy.h"
#include "passes/train/recipe.h"

namespace oriel {

// What the phases need to know besides the IR.
struct PipelineOptions {
  Recipe recipe;
  Strategy strategy;
  bool explainSharding = false;
  bool explainStages = false;
  bool quiet = false;  // nothing is said of what is chosen, as for strategies that are only tried
  KernelForms kernels;
  int64_t arenaAlignment = 64;    // bytes, of values in memory
  bool hasTrainingTypes = false;  // addTrainingTypes() ran before the phase `train`
  bool overlapsByPeak = false;    // the level of overlap is chosen without planning an arena
};

// Of a step, where the batch can be split as the strategy says.
int64_t microbatchesOf(const Recipe& recipe, const Strategy& strategy);

struct PipelinePhase {
  std::string name;
  std::string summary;  // one line, for --help
  std::function<void(mlir::OpPassManager&, const PipelineOptions&)> addPasses;
  // Adds what checks that the phase, and what was run behind it, left what the next one takes.
  std::function<void(mlir::OpPassManager&)> addVerifier;
};

// specialize, raise, train, stage, strategize, propagate, partition, fuse, remat, overlap, lower.
// The import before and the emit after are no passes.
const std::vector<PipelinePhase>& pipelinePhases();

// What `train` begins with: tables that divide over ranks, and the types in which the step
// computes.
void addTrainingTypes(mlir::OpPassManager& passes, const PipelineOptions& options);

// Registers every pass of Oriel, and the dialects, for oriel-opt and for plugins.
void registerOrielPasses();
void registerOrielDialects(mlir::DialectRegistry& registry);

}  // namespace oriel

#endif  // ORIEL_DRIVER_PIPELINES_H_
