// The inputs of a model, with dimensions as the file has them: before symbols have sizes.
#ifndef ORIEL_FRONTEND_MODEL_INPUTS_H_
#define ORIEL_FRONTEND_MODEL_INPUTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "frontend/model_file.h"

namespace oriel {

struct ModelInput {
  struct Dimension {
    int64_t size = 0;                // 0: not fixed
    std::vector<std::string> names;  // what the size of one that is not fixed follows from
  };
  std::string name;
  std::vector<Dimension> shape;  // empty for a scalar, and where the rank is not known
};

// In file order; without initializers that are listed as inputs.
std::vector<ModelInput> modelInputs(const ModelFile& model);

}  // namespace oriel

#endif  // ORIEL_FRONTEND_MODEL_INPUTS_H_
