// Warnings of work with parameters that each rank of a mesh axis does, because the axis does not
// split it.
#ifndef ORIEL_PASSES_STRATEGIZE_REPEATED_WORK_H_
#define ORIEL_PASSES_STRATEGIZE_REPEATED_WORK_H_

#include <string>

#include "llvm/ADT/STLFunctionalExtras.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/strategize/blocks/tensor_blocks.h"
#include "passes/strategize/grid.h"
#include "passes/strategize/positions.h"

namespace oriel {

// Where much of it has no positions, or a number of them that cp does not divide.
void warnOfWholePositions(mlir::ModuleOp module, const Grid& grid, const Positions& positions);

// Where tp splits no more than a part of it. Of a parameter that `isKnown`, by its symbol, somebody
// has said what becomes of it. What `blocks` make that has one of the `sequenceTypes` is in pieces
// along the positions, and what ops make of that as long as they keep these.
void warnOfUnsplit(mlir::ModuleOp module, const Grid& grid,
                   llvm::function_ref<bool(const std::string&)> isKnown,
                   llvm::ArrayRef<TensorBlock> blocks,
                   const llvm::DenseSet<mlir::Type>& sequenceTypes);

}  // namespace oriel

#endif  // ORIEL_PASSES_STRATEGIZE_REPEATED_WORK_H_
