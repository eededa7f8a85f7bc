#include "driver/model_phases.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "driver/console.h"
#include "driver/global_batch.h"
#include "driver/open_model.h"
#include "driver/part_times.h"
#include "ir/oriel/segment.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Parser/Parser.h"
#include "passes/cost/cluster_attribute.h"
#include "passes/simulate/fold_blocks.h"
#include "passes/stage/part_stages.h"
#include "passes/strategy/strategy_text.h"
#include "runtime/base/status.h"

namespace oriel::driver {

namespace {

// Behind `train`.
ModelParts partsOf(mlir::ModuleOp module, const Strategy& strategy) {
  return findParts(module.lookupSymbol<mlir::func::FuncOp>("forward"),
                   module.lookupSymbol<mlir::func::FuncOp>("backward"), strategy);
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

std::string bindText(const Recipe& recipe) {
  std::string text;
  for (const auto& [name, size] : recipe.bind) absl::StrAppend(&text, name, "=", size, ";");
  return text;
}

// What a strategy says of single parameters, which the types of training and the kinds of blocks
// depend on.
std::string treatmentText(const Strategy& strategy) {
  std::string text = absl::StrCat(strategy.commonTensorParallel(nullptr));
  for (int64_t grid = 0; strategy.padding && grid < strategy.grids(); ++grid) {
    absl::StrAppend(&text, grid == 0 ? " padded for " : ",", strategy.meshOfGrid(grid).tp);
  }
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

// What times on a rank depend on.
std::string textWithoutStages(Strategy strategy) {
  strategy.remat = strategy.rematPolicy();
  strategy.memory.reset();
  strategy.overlap.reset();
  strategy.pipeline.reset();
  return strategyText(strategy);
}

}  // namespace

mlir::func::FuncOp mainOf(mlir::ModuleOp module) {
  return module.lookupSymbol<mlir::func::FuncOp>("main");
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

ModelPhases::ModelPhases(SimulationOptions options, const Vocabulary& vocabulary,
                         SimulatedModel::Diagnostics diagnostics)
    : options_(std::move(options)),
      vocabulary_(vocabulary),
      isQuiet_(diagnostics == SimulatedModel::Diagnostics::kInStatus),
      context_(vocabulary.dialects),
      printer_((context_.loadAllAvailableDialects(), &context_), options_.modelPath,
               isQuiet_ ? &errorText_ : nullptr) {
  // What is folded is small; many threads have a context each.
  context_.disableMultithreading();
}

absl::StatusOr<Recipe> ModelPhases::recipeFor(const Strategy& strategy) {
  errorText_.clear();
  ORIEL_RETURN_IF_ERROR(checkBatch(options_.recipe, strategy));
  ORIEL_RETURN_IF_ERROR(open());
  return withGlobalBatch(options_.recipe, inputs_, strategy);
}

absl::StatusOr<std::optional<int64_t>> ModelPhases::samples() {
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

absl::StatusOr<TypedModel*> ModelPhases::typedFor(const Recipe& recipe, const Strategy& strategy) {
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

absl::StatusOr<std::vector<int64_t>> ModelPhases::stagesFor(TypedModel& typed, const Recipe& recipe,
                                                            const Strategy& strategy) {
  const bool isCut = strategy.stageCount() > 1;
  if (isCut && strategy.pipeline->named.empty()) {
    ORIEL_RETURN_IF_ERROR(timeParts(typed, recipe, strategy));
  } else if (!isCut && options_.timeParts) {
    timeParts(typed, recipe, strategy).IgnoreError();  // without times it can be simulated, too
  }
  const auto timed = typed.timedParts.find(textWithoutStages(strategy));
  if (timed != typed.timedParts.end()) {
    typed.parts->parts = timed->second;
  } else {
    for (Part& part : typed.parts->parts) {
      part.forward = part.backwardInput = part.backwardWeight = 0;
    }
  }
  if (isCut) return stagesOfParts(*typed.parts, strategy, microbatchesOf(recipe, strategy));
  return std::vector<int64_t>(typed.parts->parts.size(), 0);
}

absl::Status ModelPhases::timeParts(TypedModel& typed, const Recipe& recipe,
                                    const Strategy& strategy) {
  const std::string text = textWithoutStages(strategy);
  if (typed.timedParts.count(text) > 0) return absl::OkStatus();
  PartsInStages row =
      partsInStages(typed, std::vector<int64_t>(typed.parts->parts.size(), 0), recipe);
  const Strategy one;
  const Repetition repetition(row, one, recipe);
  for (const std::set<int64_t>& dropped : {repetition.dropped(std::nullopt), std::set<int64_t>()}) {
    ORIEL_ASSIGN_OR_RETURN(TrainedModel * trained,
                           trainedWithout(typed, dropped, recipe, strategy));
    Recipe itsRecipe = trained->recipe;
    itsRecipe.microBatch = recipe.microBatch;
    const Strategy own = dropped.empty() ? strategy : withNamesOf(*trained->module, strategy);
    ModelParts parts = partsOf(*trained->module, own);
    // Without times where the phases to come will say why.
    const PipelineOptions options = pipelineOptions(itsRecipe, own);
    std::ignore = timePartsOnRank(*trained->module, options, &parts);
    if (takeTimes(typed, dropped, parts.parts, text)) return absl::OkStatus();
  }
  return absl::InternalError("training changes the parts of the model; this is a bug of Oriel");
}

absl::StatusOr<TrainedModel*> ModelPhases::trainedWithout(TypedModel& typed,
                                                          const std::set<int64_t>& dropped,
                                                          const Recipe& recipe,
                                                          const Strategy& strategy) {
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

absl::StatusOr<std::vector<ProgramCost>> ModelPhases::costsOf(mlir::ModuleOp module,
                                                              const Recipe& recipe,
                                                              const Strategy& strategy,
                                                              const Repetition& repetition) {
  if (!module->hasAttr(kPartStagesAttr)) {
    timePartsForCuts(module, pipelineOptions(recipe, strategy));
  }
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

absl::Status ModelPhases::open() {
  if (isText() || file_) return absl::OkStatus();
  say("import: " + options_.modelPath);
  ORIEL_ASSIGN_OR_RETURN(ModelFile file, openModel(options_.modelPath, options_.recipe));
  file_.emplace(std::move(file));
  inputs_ = modelInputs(*file_);
  return absl::OkStatus();
}

void ModelPhases::say(const std::string& text) const {
  if (!isQuiet_) progress(text);
}

absl::Status ModelPhases::failed(const std::string& phase) const {
  if (isQuiet_ && !errorText_.empty()) {
    const absl::string_view text = absl::StripSuffix(errorText_, "\n");
    return absl::InvalidArgumentError(absl::StripPrefix(text, "error: "));
  }
  return phaseFailed(phase, printer_.errors());
}

absl::StatusOr<mlir::ModuleOp> ModelPhases::raisedFor(const std::string& bind,
                                                      const Recipe& recipe) {
  Module& raised = raised_[bind];
  if (raised) return *raised;
  ORIEL_ASSIGN_OR_RETURN(Module module, import(recipe));
  setCluster(*module, options_.cluster);
  setSoftwareStack(*module, options_.stack);
  ORIEL_RETURN_IF_ERROR(runPhases(*module, "specialize", "raise", recipe, Strategy()));
  raised = std::move(module);
  return *raised;
}

absl::StatusOr<mlir::OwningOpRef<mlir::ModuleOp>> ModelPhases::import(const Recipe& recipe) {
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

PipelineOptions ModelPhases::pipelineOptions(const Recipe& recipe, const Strategy& strategy) const {
  PipelineOptions options;
  options.recipe = recipe;
  options.strategy = strategy;
  options.kernels = options_.kernels;
  options.hasTrainingTypes = true;
  options.overlapsByPeak = !options_.whole;
  options.quiet = isQuiet_;
  return options;
}

absl::Status ModelPhases::runPhases(mlir::ModuleOp module, const std::string& first,
                                    const std::string& last, const Recipe& recipe,
                                    const Strategy& strategy) {
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

bool ModelPhases::takeTimes(TypedModel& typed, const std::set<int64_t>& dropped,
                            const std::vector<Part>& rest, const std::string& strategy) {
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
  typed.timedParts[strategy] = std::move(timed);
  return true;
}

}  // namespace oriel::driver
