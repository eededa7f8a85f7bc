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
#include "passes/simulate/repeat_grids.h"
#include "passes/stage/collective_time.h"
#include "passes/stage/parts.h"
#include "passes/stage/passes.h"
#include "passes/strategize/cluster_attribute.h"
#include "passes/strategize/programs.h"
#include "runtime/base/status.h"

namespace oriel::driver {

namespace {

using Module = mlir::OwningOpRef<mlir::ModuleOp>;

// Blocks of a kind that one stage has.
struct BlockRun {
  int kind = 0;
  int64_t stage = 0;
  std::vector<int64_t> blocks;
};

// Of what runs in steady state, two blocks tell: the first and the last of a stage may wait for
// what the others don't.
constexpr size_t kKept = 2;

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
    if (diagnostics_.errors() > 0) return alreadyReported();
    return absl::InternalError(
        absl::StrCat("the phase '", phase, "' failed without saying why; this is a bug of Oriel"));
  }

  absl::Status runPhases(mlir::ModuleOp module, const std::string& first, const std::string& last,
                         const Recipe& recipe, const Strategy& strategy) {
    PipelineOptions options;
    options.recipe = recipe;
    options.strategy = strategy;
    options.unfusedAttention = options_.unfusedAttention;
    options.fusedLoss = options_.fuseLoss;
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
    ORIEL_ASSIGN_OR_RETURN(stageOfPart_, stagesOfParts());
    findGrids();
    findRuns();
    return absl::OkStatus();
  }

  // Grids with equal stages, of which the first stands for the others.
  void findGrids() {
    const Strategy& strategy = options_.strategy;
    grids_ = RepeatedGrids();
    grids_.interleave = strategy.stageCount() / strategy.grids();
    using Content = std::vector<std::vector<int64_t>>;  // by stage, of its parts
    std::map<std::pair<Content, std::vector<int64_t>>, int64_t> classes;
    int64_t firstRank = 0;
    for (int64_t grid = 0; grid < strategy.grids(); ++grid) {
      Content content(grids_.interleave);
      for (size_t i = 0; i < parts_->parts.size(); ++i) {
        if (stageOfPart_[i] % strategy.grids() != grid) continue;
        const int64_t block = parts_->parts[i].block;
        // What is between blocks is there once.
        content[stageOfPart_[i] / strategy.grids()].push_back(
            block < 0 ? -1 - static_cast<int64_t>(i) : kinds_[block]);
      }
      const Mesh& mesh = strategy.meshOfGrid(grid);
      const auto [known, isNew] =
          classes.try_emplace({std::move(content), {mesh.dp, mesh.fsdp, mesh.tp}},
                              static_cast<int64_t>(grids_.kept.size()));
      if (isNew) grids_.kept.push_back(grid);
      grids_.keptOf.push_back(known->second);
      grids_.firstRanks.push_back(firstRank);
      firstRank += mesh.ranks();
    }
    if (!strategy.pipeline) return;
    grids_.schedule = strategy.pipeline->schedule;
    grids_.microbatches = microbatches();
    // Any number would do; with this one each grid has several in flight.
    grids_.keptMicrobatches = 2 * static_cast<int64_t>(grids_.kept.size());
  }

  bool repeatsGrids() const {
    return !grids_.kept.empty() &&
           static_cast<int64_t>(grids_.kept.size()) < options_.strategy.grids();
  }
  int64_t microbatches() const {
    return recipe_.globalBatch / (recipe_.microBatch * options_.strategy.dataParallel());
  }
  int64_t gridOfStage(int64_t stage) const { return stage % options_.strategy.grids(); }
  bool isKept(int64_t stage) const {
    return grids_.keptOf.empty() ||
           grids_.kept[grids_.keptOf[gridOfStage(stage)]] == gridOfStage(stage);
  }
  // Among those that are compiled.
  int64_t keptStage(int64_t stage) const {
    if (grids_.keptOf.empty()) return stage;
    return stage / options_.strategy.grids() * static_cast<int64_t>(grids_.kept.size()) +
           grids_.keptOf[gridOfStage(stage)];
  }

  // Equal blocks of each stage that is compiled.
  void findRuns() {
    std::map<std::pair<int64_t, int>, BlockRun> runs;
    for (size_t i = 0; i < parts_->parts.size(); ++i) {
      const int64_t block = parts_->parts[i].block;
      if (block < 0 || !isKept(stageOfPart_[i])) continue;
      BlockRun& run = runs[{stageOfPart_[i], kinds_[block]}];
      run.kind = kinds_[block];
      run.stage = keptStage(stageOfPart_[i]);
      run.blocks.push_back(block);
    }
    runs_.clear();
    for (auto& [key, run] : runs) runs_.push_back(std::move(run));
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

  // With so many blocks of each run at most, and one more of a kind.
  absl::StatusOr<std::vector<ProgramCost>> costsWith(std::optional<int> grown) {
    std::set<int64_t> dropped;
    for (size_t i = 0; i < stageOfPart_.size(); ++i) {
      const int64_t block = parts_->parts[i].block;
      if (block >= 0 && !isKept(stageOfPart_[i])) dropped.insert(block);
    }
    for (const BlockRun& run : runs_) {
      const size_t kept = keptOf(run) + (grown == run.kind && isFolded(run) ? 1 : 0);
      dropped.insert(run.blocks.begin() + static_cast<int64_t>(kept), run.blocks.end());
    }
    Module module(model_->clone());
    Recipe recipe = recipe_;
    Strategy strategy = options_.strategy;
    if (!dropped.empty()) {
      auto main = module->lookupSymbol<mlir::func::FuncOp>("main");
      dropBlocks(main, findParts(main, {}, strategy), dropped);
      recipe = withNamesOf(*module, recipe);
      strategy = withNamesOf(*module, strategy);
      strategy.memory.reset();  // the whole model's
      if (strategy.pipeline) givePartStages(*module, dropped);
      if (repeatsGrids()) keepGrids(&strategy, &recipe);
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

  // The strategy of the grids that are compiled.
  void keepGrids(Strategy* strategy, Recipe* recipe) const {
    Pipeline& pipeline = *strategy->pipeline;
    std::vector<Pipeline::Stage> named;
    for (size_t stage = 0; stage < pipeline.named.size(); ++stage) {
      if (isKept(static_cast<int64_t>(stage))) named.push_back(pipeline.named[stage]);
    }
    pipeline.named = std::move(named);
    pipeline.stages = grids_.interleave * static_cast<int64_t>(grids_.kept.size());
    recipe->globalBatch =
        recipe->microBatch * options_.strategy.dataParallel() * grids_.keptMicrobatches;
  }

  static size_t keptOf(const BlockRun& run) {
    // One that is there once more is no reason to compile twice.
    return run.blocks.size() <= kKept + 1 ? run.blocks.size() : kKept;
  }
  static bool isFolded(const BlockRun& run) { return keptOf(run) < run.blocks.size(); }

  void givePartStages(mlir::ModuleOp module, const std::set<int64_t>& dropped) {
    llvm::SmallVector<int64_t> stages;
    for (size_t i = 0; i < parts_->parts.size(); ++i) {
      if (dropped.count(parts_->parts[i].block) == 0) stages.push_back(keptStage(stageOfPart_[i]));
    }
    module->setAttr(kPartStagesAttr, mlir::DenseI64ArrayAttr::get(&context_, stages));
  }

  absl::StatusOr<std::vector<ProgramCost>> costsOfAll() {
    ORIEL_ASSIGN_OR_RETURN(const std::vector<ProgramCost> base, costsWith(std::nullopt));
    std::map<int, std::vector<ProgramCost>> grown;  // by kind
    for (const BlockRun& run : runs_) {
      if (!isFolded(run) || grown.count(run.kind) > 0) continue;
      ORIEL_ASSIGN_OR_RETURN(grown[run.kind], costsWith(run.kind));
      if (grown[run.kind].size() != base.size()) return wholeCosts();
    }
    std::vector<ProgramCost> costs;
    for (size_t program = 0; program < base.size(); ++program) {
      std::vector<BlockDifference> differences;
      for (const auto& [kind, more] : grown) {
        differences.push_back(differenceOf(kind, program, &more[program], base.size()));
      }
      std::optional<ProgramCost> cost = extrapolate(base[program], differences);
      if (!cost) return wholeCosts();
      costs.push_back(*std::move(cost));
    }
    if (!repeatsGrids()) return costs;
    std::optional<std::vector<ProgramCost>> repeated = repeatGrids(costs, grids_);
    if (!repeated) return wholeCosts();
    return *std::move(repeated);
  }

  // Where a block or a grid more changes more than times.
  absl::StatusOr<std::vector<ProgramCost>> wholeCosts() {
    runs_.clear();
    stageOfPart_.clear();
    grids_ = RepeatedGrids();
    return costsWith(std::nullopt);
  }

  BlockDifference differenceOf(int kind, size_t program, const ProgramCost* withOneMore,
                               size_t programs) const {
    BlockDifference difference;
    difference.withOneMore = withOneMore;
    double missing = 0, added = 0;
    for (const BlockRun& run : runs_) {
      const size_t own = static_cast<size_t>(run.stage) % programs;
      if (run.kind != kind || !isFolded(run) || own != program) continue;
      const auto more = static_cast<double>(run.blocks.size() - keptOf(run));
      difference.ofStage[run.stage] = more;
      missing += more;
      added += 1;
    }
    difference.times = added > 0 ? missing / added : 0;
    return difference;
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
    const auto runs = static_cast<double>(microbatches());
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
      std::string& name = names[gridOfStage(stage)];
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
  Module model_;  // after `raise`
  std::optional<ModelParts> parts_;
  std::vector<int> kinds_;            // by block; empty where nothing repeats
  std::vector<int64_t> stageOfPart_;  // empty where all is compiled
  std::vector<BlockRun> runs_;
  RepeatedGrids grids_;
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
