// Passes of the fuse phase; see passes.td.
#ifndef ORIEL_PASSES_FUSE_PASSES_H_
#define ORIEL_PASSES_FUSE_PASSES_H_

#include "ir/oriel/oriel.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace oriel {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/fuse/passes.h.inc"

}  // namespace oriel

#endif  // ORIEL_PASSES_FUSE_PASSES_H_
