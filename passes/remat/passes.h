// Passes of the remat phase; see passes.td.
#ifndef ORIEL_PASSES_REMAT_PASSES_H_
#define ORIEL_PASSES_REMAT_PASSES_H_

#include "ir/oriel/oriel.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace oriel {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/remat/passes.h.inc"

}  // namespace oriel

#endif  // ORIEL_PASSES_REMAT_PASSES_H_
