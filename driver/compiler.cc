#include "driver/compiler.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "driver/console.h"
#include "driver/extra_passes.h"
#include "driver/global_batch.h"
#include "driver/memory_budget.h"
#include "driver/open_model.h"
#include "driver/part_times.h"
#include "driver/pipelines.h"
#include "driver/sha256.h"
#include "driver/start_from.h"
#include "driver/version.h"
#include "mlir/Pass/PassManager.h"
#include "passes/cost/cluster_attribute.h"
#include "passes/emit/emit.h"
#include "runtime/base/status.h"
#include "runtime/plan/device.h"
#include "runtime/plan/verify.h"

namespace oriel::driver {

namespace {

constexpr char kImport[] = "import";
constexpr char kEmit[] = "emit";

// The values that the model file does not have must come from the recipe. Early, too.
absl::Status checkMissingWeights(const ModelFile& model, const Recipe& recipe) {
  std::vector<std::string> uncovered;
  for (const std::string& name : model.missingWeights().parameters) {
    if (recipe.initialValueOf(name) == nullptr) uncovered.push_back("\"" + name + "\"");
  }
  if (uncovered.empty()) return absl::OkStatus();
  constexpr size_t kShown = 3;
  std::string others;
  if (uncovered.size() > kShown) {
    others = absl::StrCat(" and ", uncovered.size() - kShown, " other parameters");
    uncovered.resize(kShown);
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "the model has no values for ", absl::StrJoin(uncovered, ", "), others, ", because \"",
      absl::StrJoin(model.missingWeights().files, "\", \""),
      "\" does not exist: put that file beside the model, or let the recipe make them (`init`, "
      "docs/recipe.md)"));
}

absl::Status runPhase(const PipelinePhase& phase, const PipelineOptions& options,
                      mlir::ModuleOp module, const DiagnosticPrinter& diagnostics) {
  progress(phase.name);
  mlir::PassManager passes(module.getContext());
  phase.addPasses(passes, options);
  if (failed(passes.run(module))) return phaseFailed(phase.name, diagnostics.errors());
  return absl::OkStatus();
}

// Behind passes that a user added, too.
absl::Status verifyPhase(const PipelinePhase& phase, mlir::ModuleOp module,
                         const DiagnosticPrinter& diagnostics) {
  mlir::PassManager passes(module.getContext());
  phase.addVerifier(passes);
  if (failed(passes.run(module))) return phaseFailed(phase.name, diagnostics.errors());
  return absl::OkStatus();
}

absl::StatusOr<plan::Provenance> makeProvenance(const CompileOptions& options,
                                                const Vocabulary& vocabulary) {
  plan::Provenance provenance;
  provenance.set_model_path(options.modelPath);
  ORIEL_ASSIGN_OR_RETURN(*provenance.mutable_model_sha256(), sha256OfFile(options.modelPath));
  provenance.set_recipe(options.recipe.text);
  provenance.set_compiler_version(kVersion);
  provenance.set_strategy(options.strategy.text);
  for (const std::string& plugin : vocabulary.plugins) {
    provenance.add_flags(absl::StrCat("--load-plugin=", plugin));
  }
  if (options.cluster) provenance.add_flags(options.clusterFlag);
  for (const std::string& option : provenanceOf(options.kernels)) provenance.add_flags(option);
  for (const std::string& passes : options.passesAfter) {
    provenance.add_flags(absl::StrCat("--passes-after=", passes));
  }
  if (!options.startFrom.empty()) {
    provenance.add_flags(absl::StrCat("--start-from=", options.startFrom));
  }
  return provenance;
}

}  // namespace

absl::Status phaseFailed(const std::string& phase, int errorsPrinted) {
  if (errorsPrinted > 0) return alreadyReported();
  return absl::InternalError(
      absl::StrCat("the phase '", phase, "' failed without saying why; this is a bug of Oriel"));
}

std::vector<std::string> phaseNames() {
  std::vector<std::string> names = {kImport};
  for (const PipelinePhase& phase : pipelinePhases()) names.push_back(phase.name);
  names.push_back(kEmit);
  return names;
}

absl::StatusOr<mlir::OwningOpRef<mlir::ModuleOp>> importStatic(
    mlir::MLIRContext& context, const ModelFile& model, const ImportOptions& options,
    const DiagnosticPrinter& diagnostics) {
  mlir::OwningOpRef<mlir::ModuleOp> module = importModel(context, model, options);
  if (!module) return phaseFailed(kImport, diagnostics.errors());
  // The first phase needs nothing but the module.
  ORIEL_RETURN_IF_ERROR(runPhase(pipelinePhases().front(), {}, *module, diagnostics));
  return module;
}

absl::StatusOr<std::optional<Compilation>> runCompiler(const CompileOptions& options,
                                                       const Vocabulary& vocabulary) {
  ORIEL_ASSIGN_OR_RETURN(PhaseDumper dumper, PhaseDumper::create(options.dump, phaseNames()));
  ORIEL_ASSIGN_OR_RETURN(ExtraPasses extraPasses,
                         ExtraPasses::create(options.passesAfter, phaseNames()));
  std::optional<StartFrom> start;
  if (!options.startFrom.empty()) {
    ORIEL_ASSIGN_OR_RETURN(
        start, parseStartFrom(options.startFrom, phaseNames(), options.passesAfter, options.dump));
  }
  // Early: a user should not wait for a compilation to hear this.
  ORIEL_RETURN_IF_ERROR(checkBatch(options.recipe, options.strategy));

  progress("import: " + options.modelPath);
  ORIEL_ASSIGN_OR_RETURN(ModelFile model, openModel(options.modelPath, options.recipe));
  ORIEL_RETURN_IF_ERROR(checkMissingWeights(model, options.recipe));
  ORIEL_ASSIGN_OR_RETURN(const Recipe recipe,
                         withGlobalBatch(options.recipe, modelInputs(model), options.strategy));
  ORIEL_ASSIGN_OR_RETURN(plan::Provenance provenance, makeProvenance(options, vocabulary));

  mlir::MLIRContext context(vocabulary.dialects);
  context.loadAllAvailableDialects();
  DiagnosticPrinter diagnostics(&context, options.modelPath);
  mlir::OwningOpRef<mlir::ModuleOp> module;
  if (start) {
    ORIEL_ASSIGN_OR_RETURN(module, readStart(context, *start));
  } else {
    module = importModel(context, model, ImportOptions{recipe.bind, &vocabulary.ops});
    if (!module) return phaseFailed(kImport, diagnostics.errors());
    if (options.cluster) setCluster(*module, *options.cluster);
  }

  PipelineOptions pipeline;
  pipeline.recipe = recipe;
  pipeline.strategy = options.strategy;
  pipeline.explainSharding = options.explainSharding;
  pipeline.explainStages = options.explainStages;
  pipeline.kernels = options.kernels;
  pipeline.arenaAlignment = runtime::ArenaAlignment(options.device.kind());
  // What stands behind a phase: the user's passes, and the dump, but of what was read.
  auto finish = [&](const std::string& phase) -> absl::Status {
    if (failed(extraPasses.runAfter(phase, *module))) return alreadyReported();
    return start && start->phase == phase ? absl::OkStatus() : dumper.after(phase, *module);
  };
  bool runs = !start || start->phase == kImport;
  if (runs) ORIEL_RETURN_IF_ERROR(finish(kImport));
  if (dumper.stopsAfter(kImport)) return std::nullopt;
  for (const PipelinePhase& phase : pipelinePhases()) {
    if (runs && phase.name == "stage") timePartsForCuts(*module, pipeline);
    if (runs) ORIEL_RETURN_IF_ERROR(runPhase(phase, pipeline, *module, diagnostics));
    runs |= start && start->phase == phase.name;
    if (!runs) continue;
    ORIEL_RETURN_IF_ERROR(finish(phase.name));
    ORIEL_RETURN_IF_ERROR(verifyPhase(phase, *module, diagnostics));
    if (dumper.stopsAfter(phase.name)) return std::nullopt;
  }

  progress(kEmit);
  mlir::FailureOr<plan::Plan> plan = emitPlan(
      *module, recipe,
      EmitOptions{std::move(provenance), model.name(), options.weightsFile, options.device});
  if (failed(plan)) return phaseFailed(kEmit, diagnostics.errors());
  if (absl::Status sound = runtime::VerifyPlan(*plan); !sound.ok()) {
    const bool isChanged = start || !options.passesAfter.empty();
    return runtime::Annotate(
        sound, isChanged ? "the compiled plan is not sound: --start-from or --passes-after have "
                           "changed what the verifiers between phases can't see"
                         : "the compiled plan is not sound; this is a bug of Oriel");
  }
  if (start && plan->world_size() != options.strategy.ranks()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--start-from: ", start->file, " is for ", plan->world_size(),
                     " ranks, and the strategy for ", options.strategy.ranks(),
                     ": give the options of the strategy with which it was written"));
  }
  ORIEL_RETURN_IF_ERROR(checkMemory(*plan, options.strategy));
  ORIEL_RETURN_IF_ERROR(dumper.after(kEmit, plan->DebugString(), "txtpb"));
  if (dumper.stopsAfter(kEmit)) return std::nullopt;
  return std::optional<Compilation>(Compilation{std::move(model), *std::move(plan)});
}

}  // namespace oriel::driver
