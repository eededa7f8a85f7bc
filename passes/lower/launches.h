// Which ops the phase `lower` makes one launch of, for who decides by what a program takes before
// it is lowered.
#ifndef ORIEL_PASSES_LOWER_LAUNCHES_H_
#define ORIEL_PASSES_LOWER_LAUNCHES_H_

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"

namespace oriel {

// What is joined besides what every program has joined.
struct LaunchForms {
  bool fused = false;      // sums, casts, activations to the ops beside them: oriel-form-fused
  bool generated = false;  // chains of pointwise ops: oriel-form-generated
};

// Of a program behind `overlap`: what the passes of these names do, one by one.
mlir::LogicalResult assignGradients(mlir::ModuleOp program);
void keepRemainders(mlir::ModuleOp program);
void formFused(mlir::ModuleOp program);

// Of a program behind `overlap`: its ops as they are launched, with the times and the memory of
// what `lower` makes of them, but for optimizer steps, of which OpTimes knows that they
// become lists. Fails with a diagnostic for a program without a good schedule. Who calls it from a
// pass declares the dialects.
mlir::LogicalResult formLaunches(mlir::ModuleOp program, const LaunchForms& forms);
void registerLaunchDialects(mlir::DialectRegistry& registry);

}  // namespace oriel

#endif  // ORIEL_PASSES_LOWER_LAUNCHES_H_
