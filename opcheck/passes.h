// Checks of ops by value (passes.td).
#ifndef ORIEL_OPCHECK_PASSES_H_
#define ORIEL_OPCHECK_PASSES_H_

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/Pass.h"

namespace oriel {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "opcheck/passes.h.inc"

// That of the attributes `check.*`.
void registerCheckDialect(mlir::DialectRegistry& registry);

}  // namespace oriel

#endif  // ORIEL_OPCHECK_PASSES_H_
