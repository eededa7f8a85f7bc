// The recipe's optimizer.
#ifndef ORIEL_PASSES_TRAIN_RECIPE_OPTIMIZER_H_
#define ORIEL_PASSES_TRAIN_RECIPE_OPTIMIZER_H_

#include "passes/train/recipe.h"
#include "passes/train/yaml_reader.h"

namespace oriel {

// Reads the value of `optimizer`.
Recipe::Optimizer readOptimizer(YamlDocument& document, const YAML::Node& node);

}  // namespace oriel

#endif  // ORIEL_PASSES_TRAIN_RECIPE_OPTIMIZER_H_
