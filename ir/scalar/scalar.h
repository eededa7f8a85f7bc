// Pointwise ops and reductions element by element; see scalar.td.
//
//   mlir::DialectRegistry registry;
//   oriel::ir::registerScalarModels(registry);  // before the oriel dialect is loaded, or after
#ifndef ORIEL_IR_SCALAR_SCALAR_H_
#define ORIEL_IR_SCALAR_SCALAR_H_

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/OpDefinition.h"
// Behind what it needs.
#include "ir/scalar/scalar.h.inc"

namespace oriel::ir {

// The type in which an element of this one is computed (f32 for bf16); null for one that generated
// code does not take.
mlir::Type computeType(mlir::Type element);

// Attaches ScalarOpInterface and RowReductionOpInterface to ops of the oriel dialect, and adds the
// dialects that it builds in, which have to be loaded before it is used.
void registerScalarModels(mlir::DialectRegistry& registry);

}  // namespace oriel::ir

#endif  // ORIEL_IR_SCALAR_SCALAR_H_
