// Which blocks and which grids of a pipeline stand for others that are equal, so that a part of the
// model is compiled, for few microbatches, and what all of it takes from that.
#ifndef ORIEL_PASSES_SIMULATE_REPETITION_H_
#define ORIEL_PASSES_SIMULATE_REPETITION_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "passes/simulate/program_profile.h"
#include "passes/simulate/repeat_grids.h"
#include "passes/strategy/strategy.h"
#include "passes/train/recipe.h"

namespace oriel {

// The parts of a model in order, and the strategy's cuts.
struct PartsInStages {
  std::vector<int64_t> blockOf;      // by part, -1: between blocks
  std::vector<int64_t> stageOf;      // by part
  std::vector<int> kindOf;           // by block, as blockKinds() has it
  std::vector<double> parametersOf;  // by block: elements that are trained, or all if none is
  bool keepsBlocks = false;          // none stands for others of its stage
};

class Repetition {
 public:
  // Nothing is repeated.
  Repetition() = default;
  // `recipe` is for a microbatch of all data-parallel ranks. Both outlive this.
  Repetition(PartsInStages parts, const Strategy& strategy, const Recipe& recipe);

  // Blocks that are not compiled; with one more block of a kind in each stage that lacks some.
  std::set<int64_t> dropped(std::optional<int> grown) const;
  // The kinds of which stages lack blocks.
  std::set<int> kindsToGrow() const;

  // By part that is left: its stage among those that are compiled.
  std::vector<int64_t> stagesOfRest(const std::set<int64_t>& dropped) const;
  // By part that is left: whether it is a block.
  std::vector<bool> blocksOfRest(const std::set<int64_t>& dropped) const;
  // For the grids that are compiled. Names of parameters stay.
  void restrict(Strategy* strategy, Recipe* recipe) const;

  // What the memory of each grid is by its own schedule, where it stands for others or has more
  // microbatches, and what an allocator reserves. `module` is what `costs` are of. Fails as
  // programCosts().
  mlir::LogicalResult addMemoryOfGrids(mlir::ModuleOp module,
                                       std::vector<ProgramCost>* costs) const;

  // What all programs take: from a compilation without those that are dropped(), and one for each
  // kind that grows. None where something else than times differs, or where grids can't stand for
  // others.
  std::optional<std::vector<ProgramCost>> expand(
      const std::vector<ProgramCost>& base,
      const std::map<int, std::vector<ProgramCost>>& grown) const;

 private:
  // Blocks of a kind that one stage has.
  struct Run {
    int kind = 0;
    int64_t stage = 0;  // among those that are compiled
    std::vector<int64_t> blocks;
    bool isSteady = false;

    size_t kept() const;
    bool isFolded() const { return kept() < blocks.size(); }
  };

  bool isSteady(double parametersOfBlock) const;
  void findGrids();
  void findRuns();
  bool repeatsGrids() const { return grids_.kept.size() < grids_.keptOf.size(); }
  bool repeatsMicrobatches() const { return grids_.keptMicrobatches < grids_.microbatches; }
  int64_t gridOf(int64_t stage) const { return stage % grids_.grids(); }
  bool isKept(int64_t stage) const;
  int64_t keptStage(int64_t stage) const;
  BlockDifference differenceOf(int kind, size_t program, const ProgramCost* withOneMore) const;

  PartsInStages parts_;
  const Strategy* strategy_ = nullptr;
  const Recipe* recipe_ = nullptr;
  RepeatedGrids grids_;
  std::vector<Run> runs_;
};

}  // namespace oriel

#endif  // ORIEL_PASSES_SIMULATE_REPETITION_H_
