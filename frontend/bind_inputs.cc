#include "frontend/bind_inputs.h"

#include <algorithm>
#include <vector>

#include "frontend/tensor_data.h"
#include "ir/interfaces/interfaces.h"
#include "ir/oriel/inference.h"
#include "mlir/IR/Diagnostics.h"
#include "onnx/onnx_pb.h"

namespace oriel {

using mlir::LogicalResult;
using mlir::success;

namespace {

// "a", "b" and "c"
std::string quotedList(llvm::ArrayRef<std::string> names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    text += (i == 0 ? "\"" : i + 1 == names.size() ? " and \"" : ", \"") + names[i] + "\"";
  }
  return text;
}

}  // namespace

LogicalResult checkBindings(mlir::Location location, const onnx::GraphProto& graph,
                            const DimensionBindings& bind) {
  auto error = [&] { return mlir::emitError(location); };
  std::vector<std::string> symbols;
  for (const auto& input : graph.input()) {
    for (const auto& dim : input.type().tensor_type().shape().dim()) {
      if (!dim.dim_param().empty() && !llvm::is_contained(symbols, dim.dim_param())) {
        symbols.push_back(dim.dim_param());
      }
    }
  }
  for (const auto& [name, size] : bind) {
    if (!llvm::is_contained(symbols, name)) {
      auto diagnostic = error();
      diagnostic << "no input has a dimension named \"" << name << "\"";
      if (symbols.empty()) {
        return diagnostic << ": all dimensions of this model have fixed sizes";
      }
      auto nearest = *std::min_element(
          symbols.begin(), symbols.end(), [&](const std::string& a, const std::string& b) {
            llvm::StringRef wanted(name);
            return wanted.edit_distance_insensitive(a) < wanted.edit_distance_insensitive(b);
          });
      return diagnostic << "; did you mean \"" << nearest << "\"? The model has "
                        << quotedList(symbols);
    }
    if (size < 1) {
      return error() << "the dimension \"" << name << "\" is bound to " << size
                     << "; it must be at least 1";
    }
  }
  return success();
}

mlir::FailureOr<mlir::RankedTensorType> bindInputType(mlir::Location location,
                                                      const onnx::ValueInfoProto& input,
                                                      const DimensionBindings& bind) {
  auto fail = [&]() -> mlir::InFlightDiagnostic {
    auto diagnostic = mlir::emitError(location);
    diagnostic << "input \"" << input.name() << "\" ";
    return diagnostic;
  };
  if (!input.type().has_tensor_type() || !input.type().tensor_type().has_shape()) {
    return fail() << "is no tensor of known rank";
  }
  const auto& tensor = input.type().tensor_type();
  mlir::Type element = elementTypeOf(location.getContext(), tensor.elem_type());
  if (!element) {
    return fail() << "has the element type " << dataTypeName(tensor.elem_type())
                  << ", which Oriel does not know";
  }
  llvm::SmallVector<int64_t> shape;
  for (const auto& dim : tensor.shape().dim()) {
    if (dim.has_dim_value()) {
      if (dim.dim_value() < 1) {
        return fail() << "has the size " << dim.dim_value() << " in dimension " << shape.size();
      }
      shape.push_back(dim.dim_value());
      continue;
    }
    if (dim.dim_param().empty()) {
      return fail() << "has no size and no name for dimension " << shape.size()
                    << ", so it can't be bound: export the model with a named dimension";
    }
    auto bound = bind.find(dim.dim_param());
    if (bound == bind.end()) {
      return fail() << "has the unbound dimension \"" << dim.dim_param() << "\": give --bind "
                    << dim.dim_param() << "=N or model.bind in the recipe";
    }
    shape.push_back(bound->second);
  }
  if (std::string problem = ir::shapeProblem(shape); !problem.empty()) {
    return fail() << "has " << problem;
  }
  return mlir::RankedTensorType::get(shape, element);
}

}  // namespace oriel
