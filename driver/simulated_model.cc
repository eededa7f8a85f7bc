#include "driver/simulated_model.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "driver/model_phases.h"
#include "driver/pipelines.h"
#include "ir/interfaces/tensor_type.h"
#include "ir/oriel/segment.h"
#include "passes/cost/cluster_attribute.h"
#include "passes/cost/collective_time.h"
#include "passes/simulate/fold_blocks.h"
#include "passes/stage/part_stages.h"
#include "passes/strategize/placement_attribute.h"
#include "passes/strategize/positions.h"
#include "runtime/base/status.h"

namespace oriel::driver {

namespace {

using Module = mlir::OwningOpRef<mlir::ModuleOp>;

// Of the model's output that a loss sums, or of its tokens where that is its own loss.
int64_t positionsOf(mlir::func::FuncOp main, const Recipe::Loss& loss) {
  mlir::Operation* terminator = main.getBody().front().getTerminator();
  for (mlir::OpOperand& operand : terminator->getOpOperands()) {
    mlir::FailureOr<ir::ValueRole> role = ir::resultRole(main, operand.getOperandNumber());
    if (mlir::failed(role) || role->ref != loss.output) continue;
    const int64_t positions = positionsOfLoss(ir::tensorType(operand.get()));
    const bool isOwn = positions == 1 && loss.kind == Recipe::LossKind::kSum;
    return isOwn ? positionsOfOwnLoss(main) : positions;
  }
  return 1;
}

// Positions of the labels, which are an input of the recipe or of the model.
double tokensOfMicrobatch(const Recipe& recipe, mlir::func::FuncOp main) {
  if (recipe.loss.kind != Recipe::LossKind::kTokenCrossEntropy) return 0;
  for (mlir::BlockArgument argument : main.getArguments()) {
    mlir::FailureOr<ir::ValueRole> role = ir::argumentRole(main, argument.getArgNumber());
    if (mlir::failed(role) || role->kind != ir::ValueKind::kInput) continue;
    if (role->ref == recipe.loss.labels) {
      return static_cast<double>(ir::tensorType(argument).getNumElements());
    }
  }
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
    std::string& name = names[stage % strategy.grids()];
    absl::StrAppend(&name, name.empty() ? "" : "; ", stageLabel(model, stageOfPart, stage));
  }
  return names;
}

// One strategy's simulation.
class OneSimulation {
 public:
  OneSimulation(ModelPhases& model, const Strategy& strategy)
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
    if (model_.options().whole || typed_->kinds.empty()) return absl::OkStatus();
    absl::StatusOr<std::vector<int64_t>> stages = model_.stagesFor(*typed_, recipe_, strategy_);
    const bool isChosenByMemory = strategy_.rematPolicy() == RematPolicy::kAuto;
    if (isChosenByMemory) {
      if (stages.ok()) stageOfPart_ = *std::move(stages);
      return absl::OkStatus();  // or what is wrong with it is found as all is compiled
    }
    ORIEL_RETURN_IF_ERROR(stages.status());
    stageOfPart_ = *std::move(stages);
    PartsInStages parts = partsInStages(*typed_, stageOfPart_, recipe_);
    // Where an allocator finds room depends on all blocks that are there.
    parts.keepsBlocks = model_.options().stack.memory.isCached;
    repetition_ = Repetition(std::move(parts), strategy_, recipe_);
    return absl::OkStatus();
  }

  // Zeros that ranks have are not the model's.
  absl::StatusOr<double> unpaddedModelFlops(const std::set<int64_t>& dropped) {
    Strategy strategy = strategy_;
    strategy.padding = false;
    mlir::ScopedDiagnosticHandler quiet(model_.context(),
                                        [](mlir::Diagnostic&) { return mlir::success(); });
    ORIEL_ASSIGN_OR_RETURN(TypedModel * typed, model_.typedFor(recipe_, strategy));
    const std::set<int64_t> own = typed->kinds == typed_->kinds ? dropped : std::set<int64_t>();
    ORIEL_ASSIGN_OR_RETURN(TrainedModel * trained,
                           model_.trainedWithout(*typed, own, recipe_, strategy));
    return wholeModelFlops(trained->flops, typed->kinds, own);
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
      if (strategy_.padding) {
        ORIEL_ASSIGN_OR_RETURN(modelFlops_, unpaddedModelFlops(dropped));
      }
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
    // The cuts are found once.
    const bool areFound =
        !stageOfPart_.empty() && strategy_.stageCount() > 1 && strategy_.pipeline->named.empty();
    if (cutsRest || (dropped.empty() && areFound)) {
      const std::vector<int64_t> stages =
          dropped.empty() ? stageOfPart_ : repetition.stagesOfRest(dropped);
      (*module)->setAttr(kPartStagesAttr, mlir::DenseI64ArrayAttr::get(model_.context(), stages));
    }
    return model_.costsOf(*module, recipe, strategy, repetition);
  }

  absl::StatusOr<std::vector<ProgramCost>> costsOfAll() {
    absl::StatusOr<std::optional<std::vector<ProgramCost>>> costs = costsOfRepeated();
    // A block or a grid more may change more than times.
    if (costs.ok() && !*costs) costs = costsWith(Repetition(), std::nullopt);
    ORIEL_RETURN_IF_ERROR(costs.status());
    return **std::move(costs);
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
    simulation.microbatches = microbatchesOf(recipe_, strategy_);
    const auto runs = static_cast<double>(simulation.microbatches);
    simulation.modelFlops = modelFlops_ * runs;
    for (const ProgramCost& cost : costs) {
      simulation.flops += cost.flopsOfStep() * static_cast<double>(cost.ranks);
    }
    simulation.samples = static_cast<double>(recipe_.globalBatch);
    simulation.tokens = tokensOfMicrobatch(recipe_, mainOf(*typed_->module)) * runs;
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
      parts.push_back({part.name, part.block >= 0, stage, part.seconds()});
    }
    return parts;
  }

  ModelPhases& model_;
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
    : phases_(std::make_unique<ModelPhases>(std::move(options), vocabulary, diagnostics)) {}

SimulatedModel::~SimulatedModel() = default;

absl::StatusOr<Simulation> SimulatedModel::simulate(const Strategy& strategy) {
  return OneSimulation(*phases_, strategy).run();
}

absl::StatusOr<std::optional<int64_t>> SimulatedModel::samples() { return phases_->samples(); }

absl::StatusOr<SimulatedModel::Structure> SimulatedModel::structure(const Strategy& strategy) {
  ORIEL_ASSIGN_OR_RETURN(const Recipe recipe, phases_->recipeFor(strategy));
  ORIEL_ASSIGN_OR_RETURN(TypedModel * typed, phases_->typedFor(recipe, strategy));
  mlir::func::FuncOp main = mainOf(*typed->module);
  return Structure{static_cast<int64_t>(typed->parts->parts.size()), positionsOf(main, recipe.loss),
                   encodersOf(main, *typed->parts)};
}

absl::StatusOr<bool> SimulatedModel::isPaddable(Strategy strategy) {
  ORIEL_ASSIGN_OR_RETURN(const Recipe recipe, phases_->recipeFor(strategy));
  std::vector<mlir::Type> types[2];
  for (bool padding : {false, true}) {
    strategy.padding = padding;
    ORIEL_ASSIGN_OR_RETURN(TypedModel * typed, phases_->typedFor(recipe, strategy));
    for (auto parameter : typed->module->getOps<ir::ParameterOp>()) {
      types[padding].push_back(parameter.getType());
    }
  }
  return types[false] != types[true];
}

}  // namespace oriel::driver
