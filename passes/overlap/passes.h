// Passes of the overlap phase; see passes.td.
#ifndef ORIEL_PASSES_OVERLAP_PASSES_H_
#define ORIEL_PASSES_OVERLAP_PASSES_H_

#include <memory>
#include <optional>

#include "ir/oriel/oriel.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "passes/lower/launches.h"
#include "passes/strategy/strategy.h"

namespace oriel {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/overlap/passes.h.inc"

// oriel-overlap with what a strategy says; `memory`: bytes per rank, of these launches.
std::unique_ptr<mlir::Pass> createOverlap(Overlap overlap, std::optional<int64_t> memory,
                                          const LaunchForms& forms, bool byPeak);

}  // namespace oriel

#endif  // ORIEL_PASSES_OVERLAP_PASSES_H_
