#include "passes/simulate/repetition.h"

#include <algorithm>
#include <utility>

#include "ir/oriel/segment.h"
#include "passes/cost/cluster_attribute.h"

namespace oriel {

// Where a block's communication is over before the next but one, each further block takes the same.
// Else some tens are compiled, in tenths of a second.
size_t Repetition::Run::kept() const {
  constexpr size_t kFew = 4, kMax = 32, kKept = 24;
  if (isSteady) return blocks.size() <= 2 * kFew + 1 ? blocks.size() : kFew;
  return blocks.size() <= kMax ? blocks.size() : kKept;
}

// Not where a bucket, or what is gathered ahead, is of several blocks, nor where the collectives of
// tensor or context parallelism run again, which the backward may start for many blocks at a time:
// those of sequence parallelism make what is too large for that.
bool Repetition::isSteady(double parametersOfBlock) const {
  const Strategy& strategy = *strategy_;
  int64_t cuts = strategy.commonTensorParallel(nullptr);
  for (const Strategy::Module& module : strategy.modules) {
    cuts = std::max(cuts, strategy.commonTensorParallel(&module));
  }
  bool exchanges = cuts > 1 && !strategy.sequenceParallel;
  for (int64_t grid = 0; grid < strategy.grids(); ++grid) {
    exchanges |= strategy.meshOfGrid(grid).cp > 1;
  }
  if (strategy.rematPolicy() == RematPolicy::kFull && exchanges) return false;
  if (!strategy.overlap) return true;
  constexpr int64_t kAny = int64_t{1} << 60;
  constexpr double kBytes = 2;  // at least, of a parameter
  const int64_t most =
      std::max(strategy.overlap->bucketBytes(kAny), strategy.overlap->prefetchBytes(kAny));
  return kBytes * parametersOfBlock / static_cast<double>(cuts) >= static_cast<double>(most);
}

Repetition::Repetition(PartsInStages parts, const Strategy& strategy, const Recipe& recipe)
    : parts_(std::move(parts)), strategy_(&strategy), recipe_(&recipe) {
  findGrids();
  findRuns();
}

// Those with equal stages; the first stands for the others.
void Repetition::findGrids() {
  const int64_t grids = strategy_->grids();
  grids_.interleave = strategy_->stageCount() / grids;
  grids_.microbatches = recipe_->globalBatch / (recipe_->microBatch * strategy_->dataParallel());
  using Content = std::vector<std::vector<int64_t>>;  // by stage, of its parts
  std::map<std::pair<Content, std::vector<int64_t>>, int64_t> classes;
  int64_t firstRank = 0;
  for (int64_t grid = 0; grid < grids; ++grid) {
    Content content(grids_.interleave);
    for (size_t i = 0; i < parts_.blockOf.size(); ++i) {
      if (parts_.stageOf[i] % grids != grid) continue;
      const int64_t block = parts_.blockOf[i];
      // What is between blocks is there once.
      content[parts_.stageOf[i] / grids].push_back(block < 0 ? -1 - static_cast<int64_t>(i)
                                                             : parts_.kindOf[block]);
    }
    const Mesh& mesh = strategy_->meshOfGrid(grid);
    // What stands for others is compiled with more microbatches than these.
    const int64_t own = grids_.microbatches < grids ? grid : 0;
    const auto [known, isNew] =
        classes.try_emplace({std::move(content), {mesh.dp, mesh.fsdp, mesh.cp, mesh.tp, own}},
                            static_cast<int64_t>(grids_.kept.size()));
    if (isNew) grids_.kept.push_back(grid);
    grids_.keptOf.push_back(known->second);
    grids_.firstRanks.push_back(firstRank);
    firstRank += mesh.ranks();
  }
  if (strategy_->pipeline) grids_.schedule = strategy_->pipeline->schedule;
  // Any number would do; with this one each grid has several in flight.
  grids_.keptMicrobatches = 2 * static_cast<int64_t>(grids_.kept.size());
}

// Equal blocks of each stage that is compiled.
void Repetition::findRuns() {
  if (parts_.keepsBlocks) return;
  std::map<std::pair<int64_t, int>, Run> runs;
  for (size_t i = 0; i < parts_.blockOf.size(); ++i) {
    const int64_t block = parts_.blockOf[i];
    if (block < 0 || !isKept(parts_.stageOf[i])) continue;
    Run& run = runs[{parts_.stageOf[i], parts_.kindOf[block]}];
    run.kind = parts_.kindOf[block];
    run.stage = keptStage(parts_.stageOf[i]);
    run.isSteady = isSteady(parts_.parametersOf[block]);
    run.blocks.push_back(block);
  }
  for (auto& [key, run] : runs) runs_.push_back(std::move(run));
}

bool Repetition::isKept(int64_t stage) const {
  return grids_.kept[grids_.keptOf[gridOf(stage)]] == gridOf(stage);
}

int64_t Repetition::keptStage(int64_t stage) const {
  return stage / grids_.grids() * static_cast<int64_t>(grids_.kept.size()) +
         grids_.keptOf[gridOf(stage)];
}

std::set<int64_t> Repetition::dropped(std::optional<int> grown) const {
  std::set<int64_t> blocks;
  for (size_t i = 0; i < parts_.blockOf.size(); ++i) {
    if (parts_.blockOf[i] >= 0 && !isKept(parts_.stageOf[i])) blocks.insert(parts_.blockOf[i]);
  }
  for (const Run& run : runs_) {
    const size_t kept = run.kept() + (grown == run.kind && run.isFolded() ? 1 : 0);
    // In the middle. The backward of the last ones begins when the stash of all is there, and that
    // of the first ones does what others have left for later.
    const auto first = run.blocks.begin() + static_cast<int64_t>(run.kept() / 2);
    blocks.insert(first, first + static_cast<int64_t>(run.blocks.size() - kept));
  }
  return blocks;
}

std::set<int> Repetition::kindsToGrow() const {
  std::set<int> kinds;
  for (const Run& run : runs_) {
    if (run.isFolded()) kinds.insert(run.kind);
  }
  return kinds;
}

std::vector<int64_t> Repetition::stagesOfRest(const std::set<int64_t>& dropped) const {
  std::vector<int64_t> stages;
  for (size_t i = 0; i < parts_.blockOf.size(); ++i) {
    if (dropped.count(parts_.blockOf[i]) == 0) stages.push_back(keptStage(parts_.stageOf[i]));
  }
  return stages;
}

std::vector<bool> Repetition::blocksOfRest(const std::set<int64_t>& dropped) const {
  std::vector<bool> blocks;
  for (int64_t block : parts_.blockOf) {
    if (dropped.count(block) == 0) blocks.push_back(block >= 0);
  }
  return blocks;
}

void Repetition::restrict(Strategy* strategy, Recipe* recipe) const {
  if (repeatsGrids() || repeatsMicrobatches()) {
    recipe->globalBatch = recipe->microBatch * strategy_->dataParallel() * grids_.keptMicrobatches;
  }
  if (!repeatsGrids()) return;
  Pipeline& pipeline = *strategy->pipeline;
  std::vector<Pipeline::Stage> named;
  for (size_t stage = 0; stage < pipeline.named.size(); ++stage) {
    if (isKept(static_cast<int64_t>(stage))) named.push_back(pipeline.named[stage]);
  }
  pipeline.named = std::move(named);
  pipeline.stages = grids_.interleave * static_cast<int64_t>(grids_.kept.size());
}

mlir::LogicalResult Repetition::addMemoryOfGrids(mlir::ModuleOp module,
                                                 std::vector<ProgramCost>* costs) const {
  if (grids_.grids() * grids_.interleave == 1) return mlir::success();
  const bool isRepeated = repeatsGrids() || repeatsMicrobatches();
  const bool isCached = softwareStackOf(module).memory.isCached;
  if (!isRepeated && !isCached) return mlir::success();
  // Enough for the steady state, with which all others have as many in flight; gpipe has all.
  constexpr int64_t kTimes = 3;
  RepeatedGrids few = grids_;
  if (few.schedule != ScheduleKind::kGPipe) {
    few.microbatches = std::min(few.microbatches, kTimes * few.grids());
  }
  std::vector<mlir::ModuleOp> programs;
  for (mlir::ModuleOp program : ir::programsOf(module)) programs.push_back(program);
  for (int64_t grid = 0; grid < few.grids(); ++grid) {
    const int64_t kept = few.keptOf[grid];
    const std::optional<std::vector<ScheduledRun>> schedule = scheduleOnKept(*costs, few, grid);
    if (!schedule) continue;
    mlir::FailureOr<ScheduledMemory> memory = memoryWith(programs[kept], *schedule);
    if (failed(memory)) return mlir::failure();
    if (isRepeated) (*costs)[kept].memoryOn[grid] = std::move(memory->byPlace);
    if (isCached) (*costs)[kept].cachedBytesOn[grid] = memory->cachedBytes;
  }
  return mlir::success();
}

BlockDifference Repetition::differenceOf(int kind, size_t program,
                                         const ProgramCost* withOneMore) const {
  BlockDifference difference;
  difference.withOneMore = withOneMore;
  double missing = 0, added = 0;
  for (const Run& run : runs_) {
    const size_t own = static_cast<size_t>(run.stage) % grids_.kept.size();
    if (run.kind != kind || !run.isFolded() || own != program) continue;
    const auto more = static_cast<double>(run.blocks.size() - run.kept());
    difference.ofStage[run.stage] = more;
    missing += more;
    added += 1;
  }
  difference.times = added > 0 ? missing / added : 0;
  return difference;
}

std::optional<std::vector<ProgramCost>> Repetition::expand(
    const std::vector<ProgramCost>& base,
    const std::map<int, std::vector<ProgramCost>>& grown) const {
  std::vector<ProgramCost> costs;
  for (size_t program = 0; program < base.size(); ++program) {
    std::vector<BlockDifference> differences;
    for (const auto& [kind, more] : grown) {
      if (more.size() != base.size()) return std::nullopt;
      differences.push_back(differenceOf(kind, program, &more[program]));
    }
    std::optional<ProgramCost> cost = extrapolate(base[program], differences);
    if (!cost ||
        std::any_of(cost->bytes.begin(), cost->bytes.end(), [](double b) { return b < 0; })) {
      return std::nullopt;
    }
    costs.push_back(*std::move(cost));
  }
  if (repeatsGrids()) return repeatGrids(costs, grids_);
  return repeatsMicrobatches() ? repeatMicrobatches(costs, grids_) : costs;
}

}  // namespace oriel
