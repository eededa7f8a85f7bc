#include "passes/overlap/program_overlap.h"

#include "passes/overlap/last_backward.h"
#include "passes/overlap/segment_overlap.h"
#include "passes/strategize/grid.h"

namespace oriel {

mlir::LogicalResult overlapProgram(mlir::ModuleOp program, const Overlap& asked,
                                   OverlapLevel level) {
  const std::optional<OverlapSizes> sizes = sizesAt(asked, level);
  if (!sizes) return mlir::success();
  mlir::FailureOr<Grid> grid = getGrid(program);
  if (failed(grid) || failed(reduceInLastBackward(program))) return mlir::failure();
  CommunicationStreams streams;
  for (auto segment : program.getOps<mlir::func::FuncOp>()) {
    overlapSegment(segment, *grid, *sizes, streams);
  }
  return mlir::success();
}

}  // namespace oriel
