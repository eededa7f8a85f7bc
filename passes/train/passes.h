// Passes of the train phase; see passes.td.
#ifndef ORIEL_PASSES_TRAIN_PASSES_H_
#define ORIEL_PASSES_TRAIN_PASSES_H_

#include <memory>

#include "ir/oriel/oriel.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "passes/train/recipe.h"

namespace oriel {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/train/passes.h.inc"

// The passes with a recipe that was read already.
std::unique_ptr<mlir::Pass> createMixedPrecision(Recipe recipe);
// `positionRanks` split the positions of a sample (cp).
std::unique_ptr<mlir::Pass> createTrain(Recipe recipe, bool fuseLoss = false,
                                        int64_t positionRanks = 1);

}  // namespace oriel

#endif  // ORIEL_PASSES_TRAIN_PASSES_H_
