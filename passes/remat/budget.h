// Chooses what each block of a program keeps, within a budget of memory.
#ifndef ORIEL_PASSES_REMAT_BUDGET_H_
#define ORIEL_PASSES_REMAT_BUDGET_H_

#include <optional>
#include <vector>

#include "mlir/IR/BuiltinOps.h"
#include "passes/overlap/level_choice.h"
#include "passes/remat/stash_graph.h"
#include "passes/stage/blocks.h"
#include "passes/strategy/strategy.h"

namespace oriel {

struct BudgetChoice {
  std::vector<std::vector<Recomputation>> edits;  // by forward segment, in order
  LevelChoice overlap;                            // with them: its bytes and times are the plan's
  double seconds = 0;  // of what runs again, for a microbatch, in all halves of a backward
  // No choice of these blocks' options within the budget runs less again; none: none fits, as far
  // as the stash and what persists alone say.
  std::optional<double> leastSeconds;
};

// Of a program of local ops (ir::programsOf). Plans to choose from are those on the path from
// keeping all to keeping the least (option_path.h), none, `selective` and `full`, each with all
// levels of overlap (none: all of them wait), whatever the budget. Of those that fit, as the memory
// planner says, the one is taken whose step takes the least predicted time, so that more memory is
// never slower; the smallest one if none fits. Both are of launches of these forms; what runs again
// is of single ops. Fails with a diagnostic for a program that can't be lowered.
mlir::FailureOr<BudgetChoice> chooseWithin(mlir::ModuleOp program, const Blocks& blocks,
                                           int64_t budget, const std::optional<Overlap>& overlap,
                                           const LaunchForms& forms);

}  // namespace oriel

#endif  // ORIEL_PASSES_REMAT_BUDGET_H_
