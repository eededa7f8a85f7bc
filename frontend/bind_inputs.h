// Sizes for the symbolic dimensions of a model's inputs.
#ifndef ORIEL_FRONTEND_BIND_INPUTS_H_
#define ORIEL_FRONTEND_BIND_INPUTS_H_

#include <cstdint>
#include <map>
#include <string>

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Location.h"
#include "mlir/Support/LLVM.h"

namespace onnx {
class GraphProto;
class ValueInfoProto;
}  // namespace onnx

namespace oriel {

using DimensionBindings = std::map<std::string, int64_t>;

// Fails, with an error that suggests the nearest name, for one that no input has, and for a size
// below 1.
mlir::LogicalResult checkBindings(mlir::Location location, const onnx::GraphProto& graph,
                                  const DimensionBindings& bind);

// The static type of an input. Fails, with an error that says how to bind it, where a dimension has
// no size.
mlir::FailureOr<mlir::RankedTensorType> bindInputType(mlir::Location location,
                                                      const onnx::ValueInfoProto& input,
                                                      const DimensionBindings& bind);

}  // namespace oriel

#endif  // ORIEL_FRONTEND_BIND_INPUTS_H_
