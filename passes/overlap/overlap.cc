#include "ir/oriel/segment.h"
#include "passes/overlap/last_backward.h"
#include "passes/overlap/passes.h"
#include "passes/overlap/segment_overlap.h"
#include "passes/strategize/grid.h"

namespace oriel {

#define GEN_PASS_DEF_OVERLAPPASS
#include "passes/overlap/passes.h.inc"

namespace {

struct OverlapPass : impl::OverlapPassBase<OverlapPass> {
  using impl::OverlapPassBase<OverlapPass>::OverlapPassBase;
  explicit OverlapPass(Overlap overlap) : overlap_(std::move(overlap)) {}

  void runOnOperation() override {
    if (!overlap_) {
      overlap_.emplace();
      if (bucket >= 0) overlap_->bucket = bucket;
      if (prefetch >= 0) overlap_->prefetch = prefetch;
    }
    for (mlir::ModuleOp program : ir::programsOf(getOperation())) {
      mlir::FailureOr<Grid> grid = getGrid(program);
      if (failed(grid) || failed(reduceInLastBackward(program))) return signalPassFailure();
      CommunicationStreams streams;
      for (auto segment : program.getOps<mlir::func::FuncOp>()) {
        overlapSegment(segment, *grid, *overlap_, streams);
      }
    }
  }

  std::optional<Overlap> overlap_;
};

}  // namespace

std::unique_ptr<mlir::Pass> createOverlap(Overlap overlap) {
  return std::make_unique<OverlapPass>(std::move(overlap));
}

}  // namespace oriel
