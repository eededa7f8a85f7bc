// Passes of the overlap phase; see passes.td.
#ifndef ORIEL_PASSES_OVERLAP_PASSES_H_
#define ORIEL_PASSES_OVERLAP_PASSES_H_

#include <memory>

#include "ir/oriel/oriel.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "passes/strategize/strategy.h"

namespace oriel {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/overlap/passes.h.inc"

// oriel-overlap with what a strategy says.
std::unique_ptr<mlir::Pass> createOverlap(Overlap overlap);

}  // namespace oriel

#endif  // ORIEL_PASSES_OVERLAP_PASSES_H_
