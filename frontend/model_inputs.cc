#include "frontend/model_inputs.h"

#include "onnx/onnx_pb.h"

namespace oriel {

std::vector<ModelInput> modelInputs(const ModelFile& model) {
  std::vector<ModelInput> inputs;
  for (const auto& input : model.graph().input()) {
    if (model.hasInitializer(input.name())) continue;
    ModelInput result{input.name(), {}};
    for (const auto& dim : input.type().tensor_type().shape().dim()) {
      result.shape.push_back({dim.dim_value(), dim.dim_param()});
    }
    inputs.push_back(std::move(result));
  }
  return inputs;
}

}  // namespace oriel
