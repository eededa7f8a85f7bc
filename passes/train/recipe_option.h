// Passes take their recipe from the driver, or read it where an option says.
#ifndef ORIEL_PASSES_TRAIN_RECIPE_OPTION_H_
#define ORIEL_PASSES_TRAIN_RECIPE_OPTION_H_

#include <optional>
#include <string>

#include "mlir/IR/BuiltinOps.h"
#include "passes/train/recipe.h"

namespace oriel {

// Reads the recipe at `path` into `recipe` unless one is there; fails with a diagnostic.
mlir::LogicalResult readRecipeOption(mlir::ModuleOp module, const std::string& path,
                                     std::optional<Recipe>& recipe);

}  // namespace oriel

#endif  // ORIEL_PASSES_TRAIN_RECIPE_OPTION_H_
