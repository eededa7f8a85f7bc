// Sizes for the symbolic dimensions of a model's inputs.
//
// A dimension is a name, or an expression of names as exporters write it, for example
// "past_sequence_length + sequence_length", which has the size that its names give it, unless it
// is bound as a whole.
#ifndef ORIEL_FRONTEND_BIND_INPUTS_H_
#define ORIEL_FRONTEND_BIND_INPUTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "llvm/ADT/StringRef.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Location.h"
#include "mlir/Support/LLVM.h"

namespace onnx {
class GraphProto;
class ValueInfoProto;
}  // namespace onnx

namespace oriel {

using DimensionBindings = std::map<std::string, int64_t>;

// The names that a dimension is made of; itself, where it is no expression.
std::vector<std::string> namesInDimension(mlir::MLIRContext* context, llvm::StringRef dimension);

// Nothing where a name is not bound, or the size is below 0 or no number.
std::optional<int64_t> boundSize(mlir::MLIRContext* context, llvm::StringRef dimension,
                                 const DimensionBindings& bind);

// Fails, with an error that suggests the nearest name, for one that no input has, and for a size
// below 0.
mlir::LogicalResult checkBindings(mlir::Location location, const onnx::GraphProto& graph,
                                  const DimensionBindings& bind);

// The static type of an input; of no elements where a dimension is bound to 0. Fails, with an error
// that says how to bind it, where a dimension has no size.
mlir::FailureOr<mlir::RankedTensorType> bindInputType(mlir::Location location,
                                                      const onnx::ValueInfoProto& input,
                                                      const DimensionBindings& bind);

}  // namespace oriel

#endif  // ORIEL_FRONTEND_BIND_INPUTS_H_
