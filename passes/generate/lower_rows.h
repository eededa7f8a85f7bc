// Kernels that reduce rows: from the linalg form to loops over a row, for each target.
#ifndef ORIEL_PASSES_GENERATE_LOWER_ROWS_H_
#define ORIEL_PASSES_GENERATE_LOWER_ROWS_H_

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace oriel {

// Whether the function has the form of buildLinalgForm with reductions.
bool isRowForm(mlir::func::FuncOp function);

// What a row is reduced to stays in registers. Both reduce a row in the order that lanesOf says
// (row_space.h).

// The function gets a range of rows.
void rowsToRange(mlir::func::FuncOp function);

// The function becomes a kernel of `module`: a block computes as many rows as it has threads for.
void rowsToKernel(mlir::func::FuncOp function, mlir::gpu::GPUModuleOp module);

}  // namespace oriel

#endif  // ORIEL_PASSES_GENERATE_LOWER_ROWS_H_
