// The cheapest way to split one op.
#ifndef ORIEL_PASSES_PROPAGATE_SPLIT_CHOICE_H_
#define ORIEL_PASSES_PROPAGATE_SPLIT_CHOICE_H_

#include <optional>
#include <vector>

#include "passes/propagate/modules.h"
#include "passes/propagate/op_split.h"
#include "passes/propagate/versions.h"

namespace oriel {

// What there is to know of an op to choose.
struct SplitProblem {
  ir::ShardingRule rule;
  llvm::SmallVector<mlir::Value> operands;
  // How each operand would like the op to be split; not what it has, where it comes from another
  // module.
  std::vector<Sharding> wishes;
  // Sums over microbatches, which the op adds to in their place.
  std::vector<bool> kept;
  // The operand reduced and cut over the axes over which it is pending, where sequence
  // parallelism has it so.
  std::vector<std::optional<Sharding>> scattered;
  // For each result axes over which it may stay pending for free: what it is added to is pending
  // over them too, so that one collective will complete both.
  std::vector<AxisList> joined;
  // For each result what it will become, if that is known.
  std::vector<std::optional<Sharding>> hints;
  // For each result another sharding that is as good as any, if there is one.
  std::vector<std::optional<Sharding>> rows;
  // For each result its positions cut over the axes of context parallelism, if it has some, and
  // samples over the data axes, if it has some of which no operand has any.
  std::vector<std::optional<Sharding>> positions;
  llvm::SmallVector<mlir::RankedTensorType> results;
  const ModuleAxes* axes = nullptr;
  double flops = 0;  // of products and attention
};

struct SplitCandidate {
  OpSplit split;
  // Of the results, where the ops behind are to see them in another sharding than the split makes:
  // they keep their cuts.
  std::vector<Sharding> results;
  // Cut over the axes of context parallelism, but not by positions.
  bool isExchange = false;
  double cost = 0;
};

// All candidates, the cheapest first; the order among equals is by preference.
std::vector<SplitCandidate> splitCandidates(const SplitProblem& problem, const Versions& versions,
                                            ReshardPlanner& planner);

}  // namespace oriel

#endif  // ORIEL_PASSES_PROPAGATE_SPLIT_CHOICE_H_
