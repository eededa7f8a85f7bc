// Passes of the raise phase; see passes.td.
#ifndef ORIEL_PASSES_RAISE_PASSES_H_
#define ORIEL_PASSES_RAISE_PASSES_H_

#include "ir/oriel/oriel.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace oriel {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/raise/passes.h.inc"

}  // namespace oriel

#endif  // ORIEL_PASSES_RAISE_PASSES_H_
