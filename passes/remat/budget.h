// Chooses what each block of a program keeps, within a budget of memory.
#ifndef ORIEL_PASSES_REMAT_BUDGET_H_
#define ORIEL_PASSES_REMAT_BUDGET_H_

#include <optional>
#include <vector>

#include "mlir/IR/BuiltinOps.h"
#include "passes/remat/stash_graph.h"
#include "passes/stage/blocks.h"
#include "passes/strategize/strategy.h"

namespace oriel {

struct BudgetChoice {
  std::vector<std::vector<Recomputation>> edits;  // by forward segment, in order
  int64_t bytes = 0;                              // of the arena
  double seconds = 0;                             // of what runs again, for a microbatch
  // No choice of these blocks' options within the budget runs less again; none: none fits, as far
  // as the stash and what persists alone say.
  std::optional<double> leastSeconds;
};

// Of a program of local ops (ir::programsOf). Plans to choose from are those on the path from
// keeping all to keeping the least (option_path.h), none, `selective` and `full`, whatever the
// budget: the first that fits, the fastest ones first, is taken, so that more memory is never
// slower. The smallest one if none fits. What fits says the memory planner, with the overlap that
// is to come. Fails with a diagnostic for a program that can't be lowered.
mlir::FailureOr<BudgetChoice> chooseWithin(mlir::ModuleOp program, const Blocks& blocks,
                                           int64_t budget, const std::optional<Overlap>& overlap);

}  // namespace oriel

#endif  // ORIEL_PASSES_REMAT_BUDGET_H_
