// A model behind the phases that strategies share: imported, raised, in the types of training, and
// behind `train` without some of its blocks. Each is made once.
#ifndef ORIEL_DRIVER_MODEL_PHASES_H_
#define ORIEL_DRIVER_MODEL_PHASES_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "driver/compiler.h"
#include "driver/diagnostics.h"
#include "driver/pipelines.h"
#include "driver/simulated_model.h"
#include "frontend/model_inputs.h"
#include "passes/simulate/repetition.h"
#include "passes/stage/parts.h"

namespace oriel::driver {

// Behind `train`, without some of the equal blocks.
struct TrainedModel {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  Recipe recipe;  // for the parameters that are left
  ModelFlops flops;
  std::vector<bool> parts;  // whether each is a block
};

// In the types of training, for a microbatch of some size.
struct TypedModel {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::optional<ModelParts> parts;
  std::vector<int> kinds;                             // by block; empty where nothing repeats
  std::map<std::set<int64_t>, TrainedModel> trained;  // by blocks that are dropped
  // As `parts`, with times on a rank, by the text of the strategy without stages.
  std::map<std::string, std::vector<Part>> timedParts;
};

// Of a model before `train`; null if it has none.
mlir::func::FuncOp mainOf(mlir::ModuleOp module);

// The model's parts with the stage of each.
PartsInStages partsInStages(const TypedModel& typed, std::vector<int64_t> stageOf,
                            const Recipe& recipe);

// Errors and warnings about the graph go where `diagnostics` says.
class ModelPhases {
 public:
  ModelPhases(SimulationOptions options, const Vocabulary& vocabulary,
              SimulatedModel::Diagnostics diagnostics);

  // For a microbatch of all data-parallel ranks. To be asked for before anything else.
  absl::StatusOr<Recipe> recipeFor(const Strategy& strategy);
  // As SimulatedModel::samples().
  absl::StatusOr<std::optional<int64_t>> samples();
  absl::StatusOr<TypedModel*> typedFor(const Recipe& recipe, const Strategy& strategy);
  // The stage of each part. Where cuts are found, and with `timeParts`, parts have their times.
  absl::StatusOr<std::vector<int64_t>> stagesFor(TypedModel& typed, const Recipe& recipe,
                                                 const Strategy& strategy);
  // Behind `train`, without these blocks.
  absl::StatusOr<TrainedModel*> trainedWithout(TypedModel& typed, const std::set<int64_t>& dropped,
                                               const Recipe& recipe, const Strategy& strategy);
  // Of a copy of what is behind `train`, in place.
  absl::StatusOr<std::vector<ProgramCost>> costsOf(mlir::ModuleOp module, const Recipe& recipe,
                                                   const Strategy& strategy,
                                                   const Repetition& repetition);

  mlir::MLIRContext* context() { return &context_; }
  const SimulationOptions& options() const { return options_; }

 private:
  using Module = mlir::OwningOpRef<mlir::ModuleOp>;

  bool isText() const { return absl::EndsWith(options_.modelPath, ".mlir"); }
  absl::Status open();
  void say(const std::string& text) const;
  absl::Status failed(const std::string& phase) const;
  // Equal blocks take equal times, so some of them are trained; all where that changes more.
  absl::Status timeParts(TypedModel& typed, const Recipe& recipe, const Strategy& strategy);
  // What was imported for these sizes of dimensions, behind `raise`.
  absl::StatusOr<mlir::ModuleOp> raisedFor(const std::string& bind, const Recipe& recipe);
  absl::StatusOr<Module> import(const Recipe& recipe);
  PipelineOptions pipelineOptions(const Recipe& recipe, const Strategy& strategy) const;
  absl::Status runPhases(mlir::ModuleOp module, const std::string& first, const std::string& last,
                         const Recipe& recipe, const Strategy& strategy);
  // False if these are not the parts that should be left.
  static bool takeTimes(TypedModel& typed, const std::set<int64_t>& dropped,
                        const std::vector<Part>& rest, const std::string& strategy);

  const SimulationOptions options_;
  const Vocabulary& vocabulary_;
  const bool isQuiet_;
  std::string errorText_;  // of the strategy at hand, where nothing is printed
  mlir::MLIRContext context_;
  DiagnosticPrinter printer_;
  std::optional<ModelFile> file_;  // none of a text
  std::vector<ModelInput> inputs_;
  std::map<std::string, Module> raised_;  // by what the dimensions are bound to
  std::map<std::pair<std::string, std::string>, TypedModel> typed_;
};

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_MODEL_PHASES_H_
