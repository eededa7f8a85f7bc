// The model of a recipe.
#ifndef ORIEL_DRIVER_OPEN_MODEL_H_
#define ORIEL_DRIVER_OPEN_MODEL_H_

#include <string>

#include "absl/status/statusor.h"
#include "frontend/model_file.h"
#include "passes/train/recipe.h"

namespace oriel::driver {

// Opens an ONNX file. A pattern of the recipe's `parameters.trainable` that matches no parameter,
// but floats that are constants otherwise (tables, single numbers, buffers), makes parameters of
// them.
absl::StatusOr<ModelFile> openModel(const std::string& path, const Recipe& recipe);

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_OPEN_MODEL_H_
