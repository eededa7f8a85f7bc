// The overlap of a whole program.
#ifndef ORIEL_PASSES_OVERLAP_PROGRAM_OVERLAP_H_
#define ORIEL_PASSES_OVERLAP_PROGRAM_OVERLAP_H_

#include "mlir/IR/BuiltinOps.h"
#include "passes/strategize/overlap_level.h"
#include "passes/strategy/strategy.h"

namespace oriel {

// What the pass does to each program; for others that want to know what becomes of it.
mlir::LogicalResult overlapProgram(mlir::ModuleOp program, const Overlap& asked,
                                   OverlapLevel level = OverlapLevel::kAsAsked);

}  // namespace oriel

#endif  // ORIEL_PASSES_OVERLAP_PROGRAM_OVERLAP_H_
