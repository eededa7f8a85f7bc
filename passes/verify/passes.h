// Passes that check what a phase leaves; see passes.td.
#ifndef ORIEL_PASSES_VERIFY_PASSES_H_
#define ORIEL_PASSES_VERIFY_PASSES_H_

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace oriel {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/verify/passes.h.inc"

}  // namespace oriel

#endif  // ORIEL_PASSES_VERIFY_PASSES_H_
