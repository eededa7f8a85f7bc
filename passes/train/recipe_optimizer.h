// The recipe's optimizer.
#ifndef ORIEL_PASSES_TRAIN_RECIPE_OPTIMIZER_H_
#define ORIEL_PASSES_TRAIN_RECIPE_OPTIMIZER_H_

#include "passes/config/yaml_reader.h"
#include "passes/train/recipe.h"

namespace oriel {

// Reads the value of `optimizer`.
Recipe::Optimizer readOptimizer(YamlDocument& document, const YAML::Node& node);

}  // namespace oriel

#endif  // ORIEL_PASSES_TRAIN_RECIPE_OPTIMIZER_H_
