// Passes of the strategize phase; see passes.td.
#ifndef ORIEL_PASSES_STRATEGIZE_PASSES_H_
#define ORIEL_PASSES_STRATEGIZE_PASSES_H_

#include <memory>

#include "ir/oriel/oriel.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "passes/strategy/strategy.h"

namespace oriel {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/strategize/passes.h.inc"

// oriel-annotate with a strategy that was read already.
std::unique_ptr<mlir::Pass> createAnnotate(Strategy strategy, int64_t microbatches, bool explain);

}  // namespace oriel

#endif  // ORIEL_PASSES_STRATEGIZE_PASSES_H_
