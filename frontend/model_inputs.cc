#include "frontend/model_inputs.h"

#include "frontend/bind_inputs.h"
#include "mlir/IR/MLIRContext.h"
#include "onnx/onnx_pb.h"

namespace oriel {

std::vector<ModelInput> modelInputs(const ModelFile& model) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  std::vector<ModelInput> inputs;
  for (const auto& input : model.graph().input()) {
    if (model.hasInitializer(input.name())) continue;
    ModelInput result{input.name(), {}};
    for (const auto& dim : input.type().tensor_type().shape().dim()) {
      result.shape.push_back({dim.dim_value(), {}});
      if (!dim.dim_param().empty()) {
        result.shape.back().names = namesInDimension(&context, dim.dim_param());
      }
    }
    inputs.push_back(std::move(result));
  }
  return inputs;
}

}  // namespace oriel
