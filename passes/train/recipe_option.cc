#include "passes/train/recipe_option.h"

#include <utility>

namespace oriel {

mlir::LogicalResult readRecipeOption(mlir::ModuleOp module, const std::string& path,
                                     std::optional<Recipe>& recipe) {
  if (recipe) return mlir::success();
  absl::StatusOr<Recipe> read = readRecipe(path);
  if (!read.ok()) return module.emitError(std::string(read.status().message()));
  recipe = *std::move(read);
  return mlir::success();
}

}  // namespace oriel
