// Sums whose summands are made in several parts of a segment.
#ifndef ORIEL_PASSES_STAGE_SUMS_H_
#define ORIEL_PASSES_STAGE_SUMS_H_

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "passes/stage/segment_split.h"

namespace oriel {

// Ops whose part is not that of their origin's stage.
using ForcedParts = llvm::DenseMap<mlir::Operation*, int>;

// The summands of a value that adds make of which nothing else uses the partial sums, and these
// adds.
void collectSummands(mlir::Value value, llvm::SmallVectorImpl<mlir::Value>& summands,
                     llvm::SmallVectorImpl<mlir::Operation*>& adds);

// An add in front of an op, in this part.
mlir::Value addBefore(mlir::Operation* op, mlir::Value a, mlir::Value b, int part,
                      ForcedParts& forced);

// Adds up, in the last part of each other program, what the program contributes to a sum, so that
// it sends one value for it.
void sumByProgram(mlir::Value total, int rootPart, const SegmentSplit& split,
                  llvm::function_ref<int(mlir::Operation*)> partOf, ForcedParts& forced);

}  // namespace oriel

#endif  // ORIEL_PASSES_STAGE_SUMS_H_
