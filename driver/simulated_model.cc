#include "driver/simulated_model.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "driver/compiler.h"
#include "driver/console.h"
#include "driver/diagnostics.h"
#include "driver/global_batch.h"
#include "driver/pipelines.h"
#include "frontend/model_inputs.h"
#include "ir/oriel/segment.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Parser/Parser.h"
#include "passes/simulate/fold_blocks.h"
#include "passes/simulate/repetition.h"
#include "passes/stage/collective_time.h"
#include "passes/stage/parts.h"
#include "passes/strategize/cluster_attribute.h"
#include "passes/strategize/placement_attribute.h"
#include "passes/strategize/positions.h"
#include "runtime/base/status.h"

namespace oriel::driver {

namespace {

using Module = mlir::OwningOpRef<mlir::ModuleOp>;

// Behind `train`, without some of the equal blocks.
struct TrainedModel {
  Module module;
  Recipe recipe;  // for the parameters that are left
  ModelFlops flops;
  std::vector<bool> parts;  // whether each is a block
};

// In the types of training, for a microbatch of some size.
struct TypedModel {
  Module module;
  std::optional<ModelParts> parts;
  std::vector<int> kinds;                             // by block; empty where nothing repeats
  std::map<std::set<int64_t>, TrainedModel> trained;  // by blocks that are dropped
  std::vector<Part> timedParts;  // as `parts`, with times; empty until they are asked for
};

// Behind `train`.
ModelParts partsOf(mlir::ModuleOp module, const Strategy& strategy) {
  return findParts(module.lookupSymbol<mlir::func::FuncOp>("forward"),
                   module.lookupSymbol<mlir::func::FuncOp>("backward"), strategy);
}

mlir::func::FuncOp mainOf(mlir::ModuleOp module) {
  return module.lookupSymbol<mlir::func::FuncOp>("main");
}

// Of a text, which anyone may have written: an argument of @main has its parameter's type, and each
// parameter one.
mlir::LogicalResult checkParameters(mlir::ModuleOp module) {
  mlir::func::FuncOp main = mainOf(module);
  std::set<std::string> named;
  for (const auto& [index, type] : llvm::enumerate(main.getArgumentTypes())) {
    const mlir::FailureOr<ir::ValueRole> role =
        ir::argumentRole(main, static_cast<unsigned>(index));
    if (mlir::failed(role)) return mlir::failure();
    if (role->kind != ir::ValueKind::kParameter) continue;
    auto parameter = module.lookupSymbol<ir::ParameterOp>(role->ref);
    if (!parameter || parameter.getType() != type || !named.insert(role->ref).second) {
      return main.emitError("argument ")
             << index << " of type " << type << " is not the one of a parameter '" << role->ref
             << "' of that type";
    }
  }
  for (auto parameter : module.getOps<ir::ParameterOp>()) {
    if (named.count(parameter.getSymName().str()) == 0) {
      return parameter.emitError("is no argument of @main");
    }
  }
  return mlir::success();
}

// Of the model's output that a loss sums.
int64_t positionsOf(mlir::func::FuncOp main, llvm::StringRef output) {
  mlir::Operation* terminator = main.getBody().front().getTerminator();
  for (mlir::OpOperand& operand : terminator->getOpOperands()) {
    mlir::FailureOr<ir::ValueRole> role = ir::resultRole(main, operand.getOperandNumber());
    if (mlir::failed(role) || role->ref != output) continue;
    return positionsOfLoss(llvm::cast<mlir::RankedTensorType>(operand.get().getType()));
  }
  return 1;
}

std::string bindText(const Recipe& recipe) {
  std::string text;
  for (const auto& [name, size] : recipe.bind) absl::StrAppend(&text, name, "=", size, ";");
  return text;
}

PartsInStages partsInStages(const TypedModel& typed, std::vector<int64_t> stageOf,
                            const Recipe& recipe) {
  PartsInStages parts;
  parts.stageOf = std::move(stageOf);
  parts.kindOf = typed.kinds;
  for (const Part& part : typed.parts->parts) parts.blockOf.push_back(part.block);
  parts.parametersOf = blockParameters(*typed.parts, recipe);
  return parts;
}

// What a strategy says of single parameters, which the types of training and the kinds of blocks
// depend on.
std::string treatmentText(const Strategy& strategy) {
  std::string text = absl::StrCat(strategy.commonTensorParallel(nullptr));
  for (const Strategy::Module& module : strategy.modules) {
    absl::StrAppend(&text, ";", module.name, ":", absl::StrJoin(module.parameters, ","), ":",
                    strategy.commonTensorParallel(&module));
  }
  for (const Strategy::Sharding& sharding : strategy.shardings) {
    absl::StrAppend(&text, ";", absl::StrJoin(sharding.parameters, ","), ":",
                    sharding.tp.value_or(-1));
  }
  return text;
}

}  // namespace

class SimulatedModel::Impl {
 public:
  Impl(SimulationOptions options, const Vocabulary& vocabulary, Diagnostics diagnostics)
      : options_(std::move(options)),
        vocabulary_(vocabulary),
        isQuiet_(diagnostics == Diagnostics::kInStatus),
        context_(vocabulary.dialects),
        printer_((context_.loadAllAvailableDialects(), &context_), options_.modelPath,
                 isQuiet_ ? &errorText_ : nullptr) {
    // What is folded is small; many threads have a context each.
    context_.disableMultithreading();
  }

  absl::StatusOr<Recipe> recipeFor(const Strategy& strategy) {
    errorText_.clear();
    ORIEL_RETURN_IF_ERROR(checkBatch(options_.recipe, strategy));
    ORIEL_RETURN_IF_ERROR(open());
    return withGlobalBatch(options_.recipe, inputs_, strategy);
  }

  absl::StatusOr<std::optional<int64_t>> samples() {
    ORIEL_RETURN_IF_ERROR(open());
    // A text's shapes are those for the recipe's batch on one rank.
    if (isText()) return options_.recipe.microBatch;
    std::optional<int64_t> fewest;  // an input may have several rows for a sample
    for (const ModelInput& input : inputs_) {
      const int64_t size = input.shape.empty() ? 0 : input.shape.front().size;
      if (size > 0) fewest = std::min(fewest.value_or(size), size);
    }
    return fewest;
  }

  absl::StatusOr<TypedModel*> typedFor(const Recipe& recipe, const Strategy& strategy) {
    const std::string bind = bindText(recipe);
    auto [found, isNew] = typed_.try_emplace({bind, treatmentText(strategy)});
    if (!isNew && found->second.module) return &found->second;
    ORIEL_ASSIGN_OR_RETURN(mlir::ModuleOp raised, raisedFor(bind, recipe));
    Module module(raised.clone());
    // Before parts are looked for: casts belong to some.
    mlir::PassManager types(&context_);
    addTrainingTypes(types, pipelineOptions(recipe, strategy));
    if (mlir::failed(types.run(*module))) return failed("train");
    TypedModel& typed = found->second;
    typed.parts.emplace(findParts(mainOf(*module), {}, strategy));
    typed.kinds = blockKinds(*typed.parts, recipe, strategy);
    typed.module = std::move(module);
    return &typed;
  }

  // The stage of each part. Where cuts are found, and with `timeParts`, parts have their times.
  absl::StatusOr<std::vector<int64_t>> stagesFor(TypedModel& typed, const Recipe& recipe,
                                                 const Strategy& strategy) {
    const bool isCut = strategy.stageCount() > 1;
    if (isCut && strategy.pipeline->named.empty()) {
      ORIEL_RETURN_IF_ERROR(timeParts(typed, recipe, strategy));
    } else if (!isCut && options_.timeParts) {
      timeParts(typed, recipe, strategy).IgnoreError();  // without times it can be simulated, too
    }
    if (!typed.timedParts.empty()) typed.parts->parts = typed.timedParts;
    if (isCut) return stagesOfParts(*typed.parts, strategy);
    return std::vector<int64_t>(typed.parts->parts.size(), 0);
  }

  // Equal blocks take equal times, so some of them are trained; all where that changes more.
  absl::Status timeParts(TypedModel& typed, const Recipe& recipe, const Strategy& strategy) {
    if (!typed.timedParts.empty()) return absl::OkStatus();
    PartsInStages row =
        partsInStages(typed, std::vector<int64_t>(typed.parts->parts.size(), 0), recipe);
    const Strategy one;
    const Repetition repetition(row, one, recipe);
    for (const std::set<int64_t>& dropped :
         {repetition.dropped(std::nullopt), std::set<int64_t>()}) {
      ORIEL_ASSIGN_OR_RETURN(TrainedModel * trained,
                             trainedWithout(typed, dropped, recipe, strategy));
      if (takeTimes(typed, dropped, partsOf(*trained->module, strategy).parts))
        return absl::OkStatus();
    }
    return absl::InternalError("training changes the parts of the model; this is a bug of Oriel");
  }

  // Behind `train`, without these blocks.
  absl::StatusOr<TrainedModel*> trainedWithout(TypedModel& typed, const std::set<int64_t>& dropped,
                                               const Recipe& recipe, const Strategy& strategy) {
    auto [found, isNew] = typed.trained.try_emplace(dropped);
    TrainedModel& trained = found->second;
    if (!isNew && trained.module) return &trained;
    const int64_t all = static_cast<int64_t>(typed.kinds.size());
    say(absl::StrCat("compile: ", all - static_cast<int64_t>(dropped.size()), " of ", all,
                     " blocks"));
    mlir::IRMapping copies;
    Module module(llvm::cast<mlir::ModuleOp>(typed.module->getOperation()->clone(copies)));
    trained.recipe = recipe;
    if (!dropped.empty()) {
      ModelParts parts = *typed.parts;
      for (std::vector<mlir::Operation*>& ops : parts.blockOps) {
        for (mlir::Operation*& op : ops) op = copies.lookup(op);
      }
      dropBlocks(mainOf(*module), parts, dropped);
      trained.recipe = withNamesOf(*module, recipe);
    }
    ORIEL_RETURN_IF_ERROR(runPhases(*module, "train", "train", trained.recipe, strategy));
    trained.flops = modelFlopsOfMicrobatch(*module, strategy);
    if (!dropped.empty()) {
      for (const Part& part : partsOf(*module, strategy).parts) {
        trained.parts.push_back(part.block >= 0);
      }
    }
    trained.module = std::move(module);
    return &trained;
  }

  // Of a copy of what is behind `train`, in place.
  absl::StatusOr<std::vector<ProgramCost>> costsOf(mlir::ModuleOp module, const Recipe& recipe,
                                                   const Strategy& strategy,
                                                   const Repetition& repetition) {
    ORIEL_RETURN_IF_ERROR(runPhases(module, "stage", "overlap", recipe, strategy));
    for (mlir::ModuleOp program : ir::programsOf(module)) {
      if (mlir::failed(formLaunches(program, options_.kernels.launches))) return failed("lower");
    }
    mlir::FailureOr<std::vector<ProgramCost>> costs = programCosts(module);
    if (mlir::failed(costs) || mlir::failed(repetition.addMemoryOfGrids(module, &*costs))) {
      return failed("simulate");
    }
    return *std::move(costs);
  }

  mlir::MLIRContext* context() { return &context_; }
  const SimulationOptions& options() const { return options_; }

 private:
  bool isText() const { return absl::EndsWith(options_.modelPath, ".mlir"); }

  absl::Status open() {
    if (isText() || file_) return absl::OkStatus();
    say("import: " + options_.modelPath);
    llvm::Expected<ModelFile> file = ModelFile::open(options_.modelPath);
    if (!file) return toStatus(file.takeError());
    file_.emplace(std::move(*file));
    inputs_ = modelInputs(*file_);
    return absl::OkStatus();
  }

  void say(const std::string& text) const {
    if (!isQuiet_) progress(text);
  }

  absl::Status failed(const std::string& phase) const {
    if (isQuiet_ && !errorText_.empty()) {
      const absl::string_view text = absl::StripSuffix(errorText_, "\n");
      return absl::InvalidArgumentError(absl::StripPrefix(text, "error: "));
    }
    return phaseFailed(phase, printer_.errors());
  }

  // What was imported for these sizes of dimensions, behind `raise`.
  absl::StatusOr<mlir::ModuleOp> raisedFor(const std::string& bind, const Recipe& recipe) {
    Module& raised = raised_[bind];
    if (raised) return *raised;
    ORIEL_ASSIGN_OR_RETURN(Module module, import(recipe));
    setCluster(*module, options_.cluster);
    setSoftwareStack(*module, options_.stack);
    ORIEL_RETURN_IF_ERROR(runPhases(*module, "specialize", "raise", recipe, Strategy()));
    raised = std::move(module);
    return *raised;
  }

  absl::StatusOr<Module> import(const Recipe& recipe) {
    Module module;
    if (!isText()) {
      module = importModel(context_, *file_, ImportOptions{recipe.bind, &vocabulary_.ops});
      return module ? absl::StatusOr<Module>(std::move(module)) : failed("import");
    }
    say("import: " + options_.modelPath);
    module = mlir::parseSourceFile<mlir::ModuleOp>(options_.modelPath, &context_);
    if (!module) return failed("import");
    if (mlir::func::FuncOp main = mainOf(*module); main && !main.isExternal()) {
      if (mlir::failed(checkParameters(*module))) return failed("import");
      return module;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        options_.modelPath, " has no function @main: give a model as `oriel import -o` writes it"));
  }

  PipelineOptions pipelineOptions(const Recipe& recipe, const Strategy& strategy) const {
    PipelineOptions options;
    options.recipe = recipe;
    options.strategy = strategy;
    options.kernels = options_.kernels;
    options.hasTrainingTypes = true;
    options.overlapsByPeak = !options_.whole;
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
      passes.enableVerifier(options_.whole);  // a compilation of the same strategy does
      phase.addPasses(passes, options);
      if (options_.whole) phase.addVerifier(passes);
      if (mlir::failed(passes.run(module))) return failed(phase.name);
      if (phase.name == last) break;
    }
    return absl::OkStatus();
  }

  // False if these are not the parts that should be left.
  static bool takeTimes(TypedModel& typed, const std::set<int64_t>& dropped,
                        const std::vector<Part>& rest) {
    std::vector<Part> timed = typed.parts->parts;
    std::map<int, const Part*> ofKind;
    size_t next = 0;
    for (Part& part : timed) {
      const bool isDropped = part.block >= 0 && dropped.count(part.block) > 0;
      if (!isDropped && next == rest.size()) return false;
      const Part* like = isDropped ? ofKind.at(typed.kinds[part.block]) : &rest[next++];
      if ((like->block >= 0) != (part.block >= 0)) return false;
      if (part.block >= 0 && !typed.kinds.empty()) ofKind[typed.kinds[part.block]] = like;
      part.parameters = like->parameters;
      part.forward = like->forward;
      part.backwardInput = like->backwardInput;
      part.backwardWeight = like->backwardWeight;
    }
    if (next != rest.size()) return false;
    typed.timedParts = std::move(timed);
    return true;
  }

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

namespace {

double tokensOfMicrobatch(const Recipe& recipe) {
  if (recipe.loss.kind != Recipe::LossKind::kTokenCrossEntropy) return 0;
  for (const Recipe::Input& input : recipe.inputs) {
    if (input.name != recipe.loss.labels) continue;
    double elements = 1;
    for (int64_t size : input.shape) elements *= static_cast<double>(size);
    return elements;
  }
  return 0;
}

// Each block counts for those of its kind that are not there.
double wholeModelFlops(const ModelFlops& flops, const std::vector<int>& kinds,
                       const std::set<int64_t>& dropped) {
  std::map<int, std::pair<double, double>> all;  // by kind: blocks, those that are there
  for (size_t block = 0; block < kinds.size(); ++block) {
    auto& [count, present] = all[kinds[block]];
    ++count;
    if (dropped.count(static_cast<int64_t>(block)) == 0) ++present;
  }
  double sum = flops.ofRest;
  size_t next = 0;  // blocks that stay keep their order
  for (size_t block = 0; block < kinds.size(); ++block) {
    if (dropped.count(static_cast<int64_t>(block)) > 0) continue;
    const auto& [count, present] = all[kinds[block]];
    if (next < flops.ofBlocks.size()) sum += flops.ofBlocks[next++] * count / present;
  }
  return sum;
}

// By program: what it has of the model.
std::vector<std::string> namesOfStages(const ModelParts& model,
                                       const std::vector<int64_t>& stageOfPart,
                                       const Strategy& strategy) {
  if (!strategy.pipeline || stageOfPart.empty()) return {};
  std::vector<std::string> names(strategy.grids());
  for (int64_t stage = 0; stage < strategy.stageCount(); ++stage) {
    std::vector<int64_t> blocks;
    for (size_t i = 0; i < model.parts.size(); ++i) {
      const int64_t block = model.parts[i].block;
      if (stageOfPart[i] == stage && block >= 0) blocks.push_back(block);
    }
    std::string& name = names[stage % strategy.grids()];
    absl::StrAppend(&name, name.empty() ? "" : "; ",
                    blocks.empty() ? "between blocks" : model.names.describe(blocks));
  }
  return names;
}

// One strategy's simulation.
class OneSimulation {
 public:
  OneSimulation(SimulatedModel::Impl& model, const Strategy& strategy)
      : model_(model), strategy_(strategy) {}

  absl::StatusOr<Simulation> run() {
    ORIEL_ASSIGN_OR_RETURN(recipe_, model_.recipeFor(strategy_));
    ORIEL_ASSIGN_OR_RETURN(typed_, model_.typedFor(recipe_, strategy_));
    ORIEL_RETURN_IF_ERROR(findRepetition());
    ORIEL_ASSIGN_OR_RETURN(std::vector<ProgramCost> costs, costsOfAll());
    return simulationOf(std::move(costs));
  }

 private:
  // What stands for what; nothing where all is to be compiled.
  absl::Status findRepetition() {
    const bool isChosenByMemory = strategy_.rematPolicy() == RematPolicy::kAuto;
    if (model_.options().whole || isChosenByMemory || typed_->kinds.empty()) {
      return absl::OkStatus();
    }
    ORIEL_ASSIGN_OR_RETURN(stageOfPart_, model_.stagesFor(*typed_, recipe_, strategy_));
    PartsInStages parts = partsInStages(*typed_, stageOfPart_, recipe_);
    // Where an allocator finds room depends on all blocks that are there.
    parts.keepsBlocks = model_.options().stack.memory.isCached;
    repetition_ = Repetition(std::move(parts), strategy_, recipe_);
    return absl::OkStatus();
  }

  // Of the blocks that are to be compiled, and one more of a kind. None where what is left of the
  // model has other parts: one block alone repeats nothing.
  absl::StatusOr<std::optional<std::vector<ProgramCost>>> costsWith(const Repetition& repetition,
                                                                    std::optional<int> grown) {
    const std::set<int64_t> dropped = repetition.dropped(grown);
    ORIEL_ASSIGN_OR_RETURN(TrainedModel * trained,
                           model_.trainedWithout(*typed_, dropped, recipe_, strategy_));
    const bool cutsRest = !dropped.empty() && strategy_.stageCount() > 1;
    if (cutsRest && trained->parts != repetition.blocksOfRest(dropped)) return std::nullopt;
    if (!grown) {
      compiledBlocks_ = static_cast<int64_t>(typed_->kinds.size() - dropped.size());
      modelFlops_ = wholeModelFlops(trained->flops, typed_->kinds, dropped);
    }
    Module module(trained->module->clone());
    Recipe recipe = trained->recipe;
    recipe.microBatch = recipe_.microBatch;  // other ranks may share this microbatch otherwise
    Strategy strategy = strategy_;
    if (!dropped.empty()) {
      strategy = withNamesOf(*module, strategy);
      strategy.memory.reset();  // the whole model's
    }
    setRankPlaces(*module, strategy.places());
    repetition.restrict(&strategy, &recipe);
    if (cutsRest) {
      const std::vector<int64_t> stages = repetition.stagesOfRest(dropped);
      (*module)->setAttr(kPartStagesAttr, mlir::DenseI64ArrayAttr::get(model_.context(), stages));
    }
    return model_.costsOf(*module, recipe, strategy, repetition);
  }

  absl::StatusOr<std::vector<ProgramCost>> costsOfAll() {
    ORIEL_ASSIGN_OR_RETURN(std::optional<std::vector<ProgramCost>> costs, costsOfRepeated());
    // A block or a grid more may change more than times.
    if (!costs) {
      ORIEL_ASSIGN_OR_RETURN(costs, costsWith(Repetition(), std::nullopt));
    }
    return *std::move(costs);
  }

  absl::StatusOr<std::optional<std::vector<ProgramCost>>> costsOfRepeated() {
    ORIEL_ASSIGN_OR_RETURN(std::optional<std::vector<ProgramCost>> base,
                           costsWith(repetition_, std::nullopt));
    if (!base) return std::nullopt;
    std::map<int, std::vector<ProgramCost>> grown;
    for (int kind : repetition_.kindsToGrow()) {
      ORIEL_ASSIGN_OR_RETURN(std::optional<std::vector<ProgramCost>> more,
                             costsWith(repetition_, kind));
      if (!more) return std::nullopt;
      grown[kind] = *std::move(more);
    }
    return repetition_.expand(*base, grown);
  }

  absl::StatusOr<Simulation> simulationOf(std::vector<ProgramCost> costs) {
    Simulation simulation;
    std::vector<ProgramProfile> profiles;
    profiles.reserve(costs.size());
    simulation.stragglers = model_.options().stragglers;
    for (const ProgramCost& cost : costs) {
      profiles.push_back(cost.profile);
      profiles.back().slowdown =
          slowdownOf(simulation.stragglers, cost.profile.firstRank, cost.ranks);
    }
    const std::vector<LinkLevel> links = linkLevelsOf(*typed_->module);
    const RankPlaces places = strategy_.places();
    std::map<std::tuple<size_t, size_t, double>, double> known;
    auto transferSeconds = [&](size_t from, size_t to, double bytes) {
      const auto [found, isNew] = known.try_emplace({from, to, bytes}, 0);
      if (isNew) {
        const int64_t ranks = std::min(costs[from].ranks, costs[to].ranks);
        found->second = predictedTransferSeconds(links, places, profiles[from].firstRank,
                                                 profiles[to].firstRank, ranks, bytes);
      }
      return found->second;
    };
    ORIEL_ASSIGN_OR_RETURN(simulation.step, simulateStep(profiles, transferSeconds));
    simulation.stages = namesOfStages(*typed_->parts, stageOfPart_, strategy_);
    simulation.parts = partsWithStages();
    simulation.ranks = strategy_.ranks();
    simulation.microBatch = recipe_.microBatch;
    simulation.microbatches = recipe_.globalBatch / (recipe_.microBatch * strategy_.dataParallel());
    const auto runs = static_cast<double>(simulation.microbatches);
    simulation.modelFlops = modelFlops_ * runs;
    for (const ProgramCost& cost : costs) {
      simulation.flops += cost.flopsOfStep() * static_cast<double>(cost.ranks);
    }
    simulation.samples = static_cast<double>(recipe_.globalBatch);
    simulation.tokens = tokensOfMicrobatch(recipe_) * runs;
    const PeakRates& peaks = model_.options().cluster.device.flops;
    const double wide = peaks.f32.value_or(0);
    const double peak =
        recipe_.precision.mixed ? peaks.bf16.value_or(peaks.f16.value_or(wide)) : wide;
    simulation.peakFlops = peak * static_cast<double>(simulation.ranks);
    simulation.blocks = static_cast<int64_t>(typed_->kinds.size());
    simulation.compiledBlocks = compiledBlocks_;
    simulation.programs = std::move(costs);
    return simulation;
  }

  std::vector<SimulatedPart> partsWithStages() const {
    std::vector<SimulatedPart> parts;
    if (stageOfPart_.empty() && strategy_.stageCount() > 1) return parts;
    for (const Part& part : typed_->parts->parts) {
      const int64_t stage = stageOfPart_.empty() ? 0 : stageOfPart_[parts.size()];
      const double seconds = typed_->timedParts.empty() ? 0 : part.seconds();
      parts.push_back({part.name, part.block >= 0, stage, seconds});
    }
    return parts;
  }

  SimulatedModel::Impl& model_;
  const Strategy& strategy_;
  Recipe recipe_;  // for a microbatch of all data-parallel ranks
  TypedModel* typed_ = nullptr;
  std::vector<int64_t> stageOfPart_;  // empty where all is compiled
  Repetition repetition_;
  double modelFlops_ = 0;  // of a microbatch of all ranks
  int64_t compiledBlocks_ = 0;
};

}  // namespace

SimulatedModel::SimulatedModel(SimulationOptions options, const Vocabulary& vocabulary,
                               Diagnostics diagnostics)
    : impl_(std::make_unique<Impl>(std::move(options), vocabulary, diagnostics)) {}

SimulatedModel::~SimulatedModel() = default;

absl::StatusOr<Simulation> SimulatedModel::simulate(const Strategy& strategy) {
  return OneSimulation(*impl_, strategy).run();
}

absl::StatusOr<std::optional<int64_t>> SimulatedModel::samples() { return impl_->samples(); }

absl::StatusOr<SimulatedModel::Structure> SimulatedModel::structure(const Strategy& strategy) {
  ORIEL_ASSIGN_OR_RETURN(const Recipe recipe, impl_->recipeFor(strategy));
  ORIEL_ASSIGN_OR_RETURN(TypedModel * typed, impl_->typedFor(recipe, strategy));
  mlir::func::FuncOp main = mainOf(*typed->module);
  return Structure{static_cast<int64_t>(typed->parts->parts.size()),
                   positionsOf(main, recipe.loss.output), encodersOf(main, *typed->parts)};
}

}  // namespace oriel::driver
