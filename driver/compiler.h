// From a model, a recipe and a strategy to a plan, phase by phase.
#ifndef ORIEL_DRIVER_COMPILER_H_
#define ORIEL_DRIVER_COMPILER_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "driver/diagnostics.h"
#include "driver/kernel_forms.h"
#include "driver/phase_dump.h"
#include "driver/vocabulary.h"
#include "frontend/importer.h"
#include "frontend/model_file.h"
#include "mlir/IR/OwningOpRef.h"
#include "passes/cost/cluster.h"
#include "passes/strategy/strategy.h"
#include "passes/train/recipe.h"
#include "runtime/plan/plan.pb.h"

namespace oriel::driver {

// import, those of driver/pipelines.h, emit.
std::vector<std::string> phaseNames();

// A pass may fail without a word; the user must not be left without one.
absl::Status phaseFailed(const std::string& phase, int errorsPrinted);

struct CompileOptions {
  std::string modelPath;
  Recipe recipe;
  Strategy strategy;
  std::optional<Cluster> cluster;        // whose times and memory count
  std::string clusterFlag;               // what the user said for it: "--cluster=h100:2"
  plan::Device device;                   // none: the host
  std::string weightsFile;               // relative to the plan's folder
  std::vector<std::string> passesAfter;  // each PHASE:PIPELINE
  std::string startFrom;                 // PHASE:FILE; empty: from the model
  KernelForms kernels;
  bool explainSharding = false;  // on standard error
  bool explainStages = false;    // likewise
  DumpRequest dump;
};

struct Compilation {
  ModelFile model;
  plan::Plan plan;  // verified
};

// The module after import and specialize: every tensor has a static shape. The context must have a
// DiagnosticPrinter, which says whether the user has been told what is wrong.
absl::StatusOr<mlir::OwningOpRef<mlir::ModuleOp>> importStatic(
    mlir::MLIRContext& context, const ModelFile& model, const ImportOptions& options,
    const DiagnosticPrinter& diagnostics);

// None if the dump request stops before there is a plan. Errors about the graph have been printed.
absl::StatusOr<std::optional<Compilation>> runCompiler(const CompileOptions& options,
                                                       const Vocabulary& vocabulary);

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_COMPILER_H_
