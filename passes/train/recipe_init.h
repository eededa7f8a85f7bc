// The recipe's `init`: how initial values are made that the model file does not give.
#ifndef ORIEL_PASSES_TRAIN_RECIPE_INIT_H_
#define ORIEL_PASSES_TRAIN_RECIPE_INIT_H_

#include "passes/config/yaml_reader.h"
#include "passes/train/recipe.h"

namespace oriel {

// Errors latch in the document. `seed` is the default of the key of that name.
Recipe::Init readInit(YamlDocument& document, const YAML::Node& node, uint64_t seed);

}  // namespace oriel

#endif  // ORIEL_PASSES_TRAIN_RECIPE_INIT_H_
