// The StashGraph of a forward segment, and what its numbers stand for.
#ifndef ORIEL_PASSES_REMAT_FORWARD_GRAPH_H_
#define ORIEL_PASSES_REMAT_FORWARD_GRAPH_H_

#include <string>
#include <vector>

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/remat/stash_graph.h"
#include "passes/stage/blocks.h"

namespace oriel {

struct ForwardGraph {
  mlir::func::FuncOp forward;
  llvm::SmallVector<mlir::func::FuncOp> backwards;  // that read its stash, in order
  StashGraph graph;
  std::vector<mlir::Value> values;    // by number
  std::vector<mlir::Operation*> ops;  // by number
  llvm::DenseMap<mlir::Value, int> numbers;
  llvm::StringMap<int> stash;  // values by their name in the stash
};

// Of a forward segment of local ops. Fails with a diagnostic for bad roles.
mlir::FailureOr<ForwardGraph> readForward(mlir::func::FuncOp forward, const Blocks& blocks);

}  // namespace oriel

#endif  // ORIEL_PASSES_REMAT_FORWARD_GRAPH_H_
