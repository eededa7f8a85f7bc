// Passes of the lower phase; see passes.td.
#ifndef ORIEL_PASSES_LOWER_PASSES_H_
#define ORIEL_PASSES_LOWER_PASSES_H_

#include "ir/exec/exec.h"
#include "ir/oriel/oriel.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace oriel {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/lower/passes.h.inc"

}  // namespace oriel

#endif  // ORIEL_PASSES_LOWER_PASSES_H_
