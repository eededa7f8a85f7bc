#include "driver/simulation.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "driver/compiler.h"
#include "driver/console.h"
#include "driver/diagnostics.h"
#include "driver/global_batch.h"
#include "driver/pipelines.h"
#include "frontend/model_inputs.h"
#include "mlir/Parser/Parser.h"
#include "passes/simulate/fold_blocks.h"
#include "passes/simulate/repetition.h"
#include "passes/stage/collective_time.h"
#include "passes/stage/parts.h"
#include "passes/stage/passes.h"
#include "passes/strategize/cluster_attribute.h"
#include "passes/strategize/programs.h"
#include "runtime/base/status.h"

namespace oriel::driver {

namespace {

using Module = mlir::OwningOpRef<mlir::ModuleOp>;

class Simulator {
 public:
  Simulator(const SimulationOptions& options, const Vocabulary& vocabulary)
      : options_(options),
        recipe_(options.recipe),
        vocabulary_(vocabulary),
        context_(vocabulary.dialects),
        diagnostics_((context_.loadAllAvailableDialects(), &context_), options.modelPath) {}

  absl::StatusOr<Simulation> run() {
    ORIEL_RETURN_IF_ERROR(checkBatch(recipe_, options_.strategy));
    ORIEL_RETURN_IF_ERROR(load());
    setCluster(*model_, options_.cluster);
    setSoftwareStack(*model_, options_.stack);
    ORIEL_RETURN_IF_ERROR(runPhases(*model_, "specialize", "raise", recipe_, options_.strategy));
    // Before parts are looked for: casts belong to some.
    mlir::PassManager types(&context_);
    addTrainingTypes(types, pipelineOptions(recipe_, options_.strategy));
    if (mlir::failed(types.run(*model_))) return failed("train");
    ORIEL_RETURN_IF_ERROR(findRepetition());
    ORIEL_ASSIGN_OR_RETURN(std::vector<ProgramCost> costs, costsOfAll());
    return simulationOf(std::move(costs));
  }

 private:
  absl::Status load() {
    progress("import: " + options_.modelPath);
    if (absl::EndsWith(options_.modelPath, ".mlir")) {
      model_ = mlir::parseSourceFile<mlir::ModuleOp>(options_.modelPath, &context_);
      if (!model_) return failed("import");
      if (!model_->lookupSymbol<mlir::func::FuncOp>("main")) {
        return absl::InvalidArgumentError(
            absl::StrCat(options_.modelPath,
                         " has no function @main: give a model as `oriel import -o` writes it"));
      }
      ORIEL_ASSIGN_OR_RETURN(recipe_, withGlobalBatch(recipe_, {}, options_.strategy));
      return absl::OkStatus();
    }
    llvm::Expected<ModelFile> file = ModelFile::open(options_.modelPath);
    if (!file) return toStatus(file.takeError());
    ORIEL_ASSIGN_OR_RETURN(recipe_,
                           withGlobalBatch(recipe_, modelInputs(*file), options_.strategy));
    model_ = importModel(context_, *file, ImportOptions{recipe_.bind, &vocabulary_.ops});
    return model_ ? absl::OkStatus() : failed("import");
  }

  absl::Status failed(const std::string& phase) const {
    return phaseFailed(phase, diagnostics_.errors());
  }

  PipelineOptions pipelineOptions(const Recipe& recipe, const Strategy& strategy) const {
    PipelineOptions options;
    options.recipe = recipe;
    options.strategy = strategy;
    options.unfusedAttention = options_.unfusedAttention;
    options.fusedLoss = options_.fuseLoss;
    options.hasTrainingTypes = true;
    return options;
  }

  absl::Status runPhases(mlir::ModuleOp module, const std::string& first, const std::string& last,
                         const Recipe& recipe, const Strategy& strategy) {
    const PipelineOptions options = pipelineOptions(recipe, strategy);
    bool isOn = false;
    for (const PipelinePhase& phase : pipelinePhases()) {
      isOn |= phase.name == first;
      if (!isOn) continue;
      mlir::PassManager passes(&context_);
      phase.addPasses(passes, options);
      if (mlir::failed(passes.run(module))) return failed(phase.name);
      if (phase.name == last) break;
    }
    return absl::OkStatus();
  }

  // What stands for what; nothing where all is to be compiled.
  absl::Status findRepetition() {
    const bool isChosenByMemory = options_.strategy.rematPolicy() == RematPolicy::kAuto;
    auto main = model_->lookupSymbol<mlir::func::FuncOp>("main");
    parts_.emplace(findParts(main, {}, options_.strategy));
    kinds_ = blockKinds(*parts_, recipe_, options_.strategy);
    if (options_.whole || isChosenByMemory || kinds_.empty()) return absl::OkStatus();
    PartsInStages parts;
    ORIEL_ASSIGN_OR_RETURN(parts.stageOf, stagesOfParts());
    for (const Part& part : parts_->parts) parts.blockOf.push_back(part.block);
    parts.kindOf = kinds_;
    stageOfPart_ = parts.stageOf;
    repetition_ = Repetition(std::move(parts), options_.strategy, recipe_);
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<int64_t>> stagesOfParts() {
    const Strategy& strategy = options_.strategy;
    if (strategy.stageCount() == 1) return std::vector<int64_t>(parts_->parts.size(), 0);
    if (!strategy.pipeline->named.empty()) {
      absl::StatusOr<std::vector<int64_t>> stages = namedStages(*parts_, *strategy.pipeline);
      if (stages.ok()) return stages;
      return absl::InvalidArgumentError(absl::StrCat("the strategy's ", stages.status().message()));
    }
    // The whole model's backward tells where to cut.
    Module module(model_->clone());
    ORIEL_RETURN_IF_ERROR(runPhases(*module, "train", "train", recipe_, strategy));
    mlir::PassManager passes(&context_);
    passes.addPass(createAssignStages(strategy, /*explain=*/false));
    if (mlir::failed(passes.run(*module))) return failed("stage");
    auto forward = module->lookupSymbol<mlir::func::FuncOp>("forward");
    const ModelParts trained = findParts(forward, {}, strategy);
    if (trained.parts.size() != parts_->parts.size()) {
      return absl::InternalError("training changes the parts of the model; this is a bug of Oriel");
    }
    std::vector<int64_t> stages(parts_->parts.size(), 0);
    for (const auto& [op, part] : trained.partOf) {
      if (auto stage = op->getAttrOfType<mlir::IntegerAttr>(kStageAttr)) {
        stages[part] = stage.getInt();
      }
    }
    return stages;
  }

  // Of the blocks that are to be compiled, and one more of a kind.
  absl::StatusOr<std::vector<ProgramCost>> costsWith(const Repetition& repetition,
                                                     std::optional<int> grown) {
    const std::set<int64_t> dropped = repetition.dropped(grown);
    Module module(model_->clone());
    Recipe recipe = recipe_;
    Strategy strategy = options_.strategy;
    if (!dropped.empty()) {
      auto main = module->lookupSymbol<mlir::func::FuncOp>("main");
      dropBlocks(main, findParts(main, {}, strategy), dropped);
      recipe = withNamesOf(*module, recipe);
      strategy = withNamesOf(*module, strategy);
      strategy.memory.reset();  // the whole model's
      repetition.restrict(&strategy, &recipe);
      if (strategy.stageCount() > 1) {
        (*module)->setAttr(kPartStagesAttr, mlir::DenseI64ArrayAttr::get(
                                                &context_, repetition.stagesOfRest(dropped)));
      }
    }
    const auto compiled = static_cast<int64_t>(kinds_.size() - dropped.size());
    progress(absl::StrCat("compile: ", compiled, " of ", kinds_.size(), " blocks"));
    ORIEL_RETURN_IF_ERROR(runPhases(*module, "train", "train", recipe, strategy));
    if (!grown) {
      compiledBlocks_ = compiled;
      countModelFlops(modelFlopsOfMicrobatch(*module, strategy), dropped);
    }
    ORIEL_RETURN_IF_ERROR(runPhases(*module, "stage", "overlap", recipe, strategy));
    mlir::FailureOr<std::vector<ProgramCost>> costs = programCosts(*module);
    if (mlir::failed(costs)) return failed("simulate");
    return *std::move(costs);
  }

  // Each block counts for those of its kind that are not there.
  void countModelFlops(const ModelFlops& flops, const std::set<int64_t>& dropped) {
    std::map<int, std::pair<double, double>> all;  // by kind: blocks, those that are there
    for (size_t block = 0; block < kinds_.size(); ++block) {
      auto& [count, present] = all[kinds_[block]];
      ++count;
      if (dropped.count(static_cast<int64_t>(block)) == 0) ++present;
    }
    modelFlops_ = flops.ofRest;
    size_t next = 0;  // blocks that stay keep their order
    for (size_t block = 0; block < kinds_.size(); ++block) {
      if (dropped.count(static_cast<int64_t>(block)) > 0) continue;
      const auto& [count, present] = all[kinds_[block]];
      if (next < flops.ofBlocks.size()) modelFlops_ += flops.ofBlocks[next++] * count / present;
    }
  }

  absl::StatusOr<std::vector<ProgramCost>> costsOfAll() {
    ORIEL_ASSIGN_OR_RETURN(std::vector<ProgramCost> base, costsWith(repetition_, std::nullopt));
    if (compiledBlocks_ == static_cast<int64_t>(kinds_.size())) return base;
    std::map<int, std::vector<ProgramCost>> grown;
    for (int kind : repetition_.kindsToGrow()) {
      ORIEL_ASSIGN_OR_RETURN(grown[kind], costsWith(repetition_, kind));
    }
    std::optional<std::vector<ProgramCost>> costs = repetition_.expand(base, grown);
    if (costs) return *std::move(costs);
    // A block or a grid more changes more than times.
    return costsWith(Repetition(), std::nullopt);
  }

  absl::StatusOr<Simulation> simulationOf(std::vector<ProgramCost> costs) {
    std::vector<ProgramProfile> profiles;
    profiles.reserve(costs.size());
    for (const ProgramCost& cost : costs) profiles.push_back(cost.profile);
    const std::vector<LinkLevel> links = linkLevelsOf(*model_);
    auto transferSeconds = [&](size_t from, size_t to, double bytes) {
      return secondsOnLinks(links, {profiles[from].firstRank, profiles[to].firstRank},
                            LinkUse::kTransfer, bytes);
    };
    Simulation simulation;
    ORIEL_ASSIGN_OR_RETURN(simulation.step, simulateStep(profiles, transferSeconds));
    simulation.stages = stageNames();
    simulation.ranks = options_.strategy.ranks();
    const auto runs = static_cast<double>(recipe_.globalBatch /
                                          (recipe_.microBatch * options_.strategy.dataParallel()));
    simulation.modelFlops = modelFlops_ * runs;
    for (const ProgramCost& cost : costs) {
      simulation.flops += cost.flopsOfStep() * static_cast<double>(cost.ranks);
    }
    simulation.samples = static_cast<double>(recipe_.globalBatch);
    simulation.tokens = tokensOfMicrobatch() * runs;
    const PeakRates& peaks = options_.cluster.device.flops;
    const double wide = peaks.f32.value_or(0);
    const double peak =
        recipe_.precision.mixed ? peaks.bf16.value_or(peaks.f16.value_or(wide)) : wide;
    simulation.peakFlops = peak * static_cast<double>(simulation.ranks);
    simulation.blocks = static_cast<int64_t>(kinds_.size());
    simulation.compiledBlocks = compiledBlocks_;
    simulation.programs = std::move(costs);
    return simulation;
  }

  // By program; none where the pass that cuts said nothing of the whole model.
  std::vector<std::string> stageNames() const {
    if (!options_.strategy.pipeline || stageOfPart_.empty()) return {};
    std::vector<std::string> names(options_.strategy.grids());
    for (int64_t stage = 0; stage < options_.strategy.stageCount(); ++stage) {
      std::vector<int64_t> blocks;
      for (size_t i = 0; i < parts_->parts.size(); ++i) {
        const int64_t block = parts_->parts[i].block;
        if (stageOfPart_[i] == stage && block >= 0) blocks.push_back(block);
      }
      std::string& name = names[stage % options_.strategy.grids()];
      absl::StrAppend(&name, name.empty() ? "" : "; ",
                      blocks.empty() ? "between blocks" : parts_->names.describe(blocks));
    }
    return names;
  }

  double tokensOfMicrobatch() const {
    if (recipe_.loss.kind != Recipe::LossKind::kTokenCrossEntropy) return 0;
    for (const Recipe::Input& input : recipe_.inputs) {
      if (input.name != recipe_.loss.labels) continue;
      double elements = 1;
      for (int64_t size : input.shape) elements *= static_cast<double>(size);
      return elements;
    }
    return 0;
  }

  const SimulationOptions& options_;
  Recipe recipe_;  // for a microbatch of all data-parallel ranks
  const Vocabulary& vocabulary_;
  mlir::MLIRContext context_;
  DiagnosticPrinter diagnostics_;
  Module model_;  // after `raise`, in the types of training
  std::optional<ModelParts> parts_;
  std::vector<int> kinds_;            // by block; empty where nothing repeats
  std::vector<int64_t> stageOfPart_;  // empty where all is compiled
  Repetition repetition_;
  double modelFlops_ = 0;  // of a microbatch of all ranks
  int64_t compiledBlocks_ = 0;
};

}  // namespace

double Simulation::exposedCommunication() const {
  const auto busiest =
      std::min_element(step.programs.begin(), step.programs.end(),
                       [](const auto& a, const auto& b) { return a.waiting < b.waiting; });
  return busiest == step.programs.end() ? 0 : busiest->communicating / step.seconds;
}

absl::StatusOr<Simulation> simulate(const SimulationOptions& options,
                                    const Vocabulary& vocabulary) {
  return Simulator(options, vocabulary).run();
}

}  // namespace oriel::driver
