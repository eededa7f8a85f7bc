// Groups of ranks that shard what is stored of parameters that all of them don't divide.
#ifndef ORIEL_PASSES_STRATEGIZE_STORAGE_GROUPS_H_
#define ORIEL_PASSES_STRATEGIZE_STORAGE_GROUPS_H_

#include "llvm/ADT/ArrayRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/strategize/grid.h"
#include "passes/strategize/tensor_cuts.h"

namespace oriel {

// A program with what is decided of it so far.
struct StorageGrid {
  mlir::ModuleOp program;
  const TensorCuts* cuts;
  Grid* grid;
};

// Where the ranks that shard don't divide all parameters (dp = 24 and sizes that 3 does not
// divide), the group of neighbours that helps most shards the others, and the groups are copies:
// cuts the grids for it. The same on all grids with as many ranks, so that values travel between
// grids that are alike. `zero`: the level, at least 1.
void groupStorageRanks(llvm::ArrayRef<StorageGrid> grids, int zero);

}  // namespace oriel

#endif  // ORIEL_PASSES_STRATEGIZE_STORAGE_GROUPS_H_
