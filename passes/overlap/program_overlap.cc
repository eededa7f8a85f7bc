#include "passes/overlap/program_overlap.h"

#include "passes/overlap/last_backward.h"
#include "passes/overlap/segment_overlap.h"
#include "passes/strategize/grid.h"

namespace oriel {

mlir::LogicalResult overlapProgram(mlir::ModuleOp program, const Overlap& overlap) {
  mlir::FailureOr<Grid> grid = getGrid(program);
  if (failed(grid) || failed(reduceInLastBackward(program))) return mlir::failure();
  CommunicationStreams streams;
  for (auto segment : program.getOps<mlir::func::FuncOp>()) {
    overlapSegment(segment, *grid, overlap, streams);
  }
  return mlir::success();
}

}  // namespace oriel
