// Passes of the remat phase; see passes.td.
#ifndef ORIEL_PASSES_REMAT_PASSES_H_
#define ORIEL_PASSES_REMAT_PASSES_H_

#include <memory>

#include "ir/oriel/oriel.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "passes/lower/launches.h"
#include "passes/strategy/strategy.h"

namespace oriel {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/remat/passes.h.inc"

// oriel-remat with the policy and the budget of a strategy; what fits is seen with its overlap, and
// of these launches.
std::unique_ptr<mlir::Pass> createRemat(const Strategy& strategy, const LaunchForms& forms,
                                        bool quiet);

}  // namespace oriel

#endif  // ORIEL_PASSES_REMAT_PASSES_H_
