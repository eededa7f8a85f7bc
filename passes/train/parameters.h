// Which parameters a recipe trains.
#ifndef ORIEL_PASSES_TRAIN_PARAMETERS_H_
#define ORIEL_PASSES_TRAIN_PARAMETERS_H_

#include "ir/oriel/oriel.h"
#include "llvm/ADT/SmallVector.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/train/recipe.h"

namespace oriel {

// Sets `trainable` on every oriel.parameter of the module and returns the trainable ones, in
// the order of the module. Parameters of integers are never trainable. Fails, with a
// diagnostic, if a pattern of the recipe matches no parameter, if none is trainable, or if a
// trainable one is not in the recipe's precision.
mlir::FailureOr<llvm::SmallVector<ir::ParameterOp>> selectTrainable(mlir::ModuleOp module,
                                                                    const Recipe& recipe);

}  // namespace oriel

#endif  // ORIEL_PASSES_TRAIN_PARAMETERS_H_
