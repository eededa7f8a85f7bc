#include "passes/remat/block_policy.h"

#include <vector>

#include "ir/oriel/segment.h"
#include "passes/remat/forward_graph.h"
#include "passes/remat/stash_edit.h"

namespace oriel {

mlir::LogicalResult recomputeBlocks(mlir::ModuleOp program, const Blocks& blocks,
                                    RematPolicy policy) {
  if (policy == RematPolicy::kNone) return mlir::success();
  for (mlir::func::FuncOp segment : ir::segmentsOfKind(program, "forward")) {
    mlir::FailureOr<ForwardGraph> forward = readForward(segment, blocks);
    if (failed(forward)) return mlir::failure();
    std::vector<Recomputation> edits;
    for (int64_t block : blocksOf(forward->graph)) {
      edits.push_back(policy == RematPolicy::kFull ? fullRecomputation(forward->graph, block)
                                                   : selectiveRecomputation(forward->graph, block));
    }
    if (failed(editStash(*forward, blocks, edits))) return mlir::failure();
  }
  return mlir::success();
}

}  // namespace oriel
