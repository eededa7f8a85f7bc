// Passes of the stage phase; see passes.td.
#ifndef ORIEL_PASSES_STAGE_PASSES_H_
#define ORIEL_PASSES_STAGE_PASSES_H_

#include <memory>

#include "ir/oriel/oriel.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "passes/lower/launches.h"
#include "passes/strategy/strategy.h"

namespace oriel {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/stage/passes.h.inc"

// oriel-assign-stages with a strategy that was read already.
std::unique_ptr<mlir::Pass> createAssignStages(Strategy strategy, int64_t microbatches,
                                               const LaunchForms& forms, bool explain);

// oriel-split-stages with a strategy that was read already.
std::unique_ptr<mlir::Pass> createSplitStages(Strategy strategy, int64_t microbatches);

}  // namespace oriel

#endif  // ORIEL_PASSES_STAGE_PASSES_H_
