// Reductions of gradients where the last microbatch makes them.
#ifndef ORIEL_PASSES_OVERLAP_LAST_BACKWARD_H_
#define ORIEL_PASSES_OVERLAP_LAST_BACKWARD_H_

#include "llvm/ADT/ArrayRef.h"
#include "mlir/IR/BuiltinOps.h"

namespace oriel {

// Where the update of a program reduces what was accumulated over the microbatches, the segment
// that adds the last part to it does so instead: a copy of it, named `backward_last.2` for
// @backward.2, which takes its place in the schedule for the last microbatch. The update finds a
// reduced gradient in the gradient's place, or, where the reduction leaves this rank a piece, in a
// stash value `reduced.SYMBOL`; then its entry in the schedule names that microbatch too. Same
// values, bit by bit. What the update does with a gradient before it reduces it stays there.
mlir::LogicalResult reduceInLastBackward(mlir::ModuleOp program);

// Updates send to each other: where that of one program goes with the last microbatch, all do.
mlir::LogicalResult alignUpdates(llvm::ArrayRef<mlir::ModuleOp> programs);

}  // namespace oriel

#endif  // ORIEL_PASSES_OVERLAP_LAST_BACKWARD_H_
