// Initializers that are tables computed by the exporter, not weights, where its metadata is silent.
#ifndef ORIEL_FRONTEND_CONSTANT_TABLES_H_
#define ORIEL_FRONTEND_CONSTANT_TABLES_H_

#include <optional>

#include "frontend/tensor_data.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"

namespace onnx {
class GraphProto;
class TensorProto;
}  // namespace onnx

namespace oriel {

// Names of the float initializers of a graph that training must leave alone.
//
// By their use alone:
// - frequencies: a vector whose products only become the arguments of sines and cosines;
// - tables of rotary embeddings: if `isFolded` (the exporter computed it from others), what scales
//   elements of two or more dimensions. Learned factors are vectors.
// By their use and their values (table_values.h), of those that `valuesOf` gives: masks, cosines
// and sines that only scale, angles, and slopes and biases of ALiBi that only softmax sees.
llvm::StringSet<> findConstantTables(
    const onnx::GraphProto& graph, llvm::function_ref<bool(llvm::StringRef)> isFolded,
    llvm::function_ref<std::optional<TensorData>(const onnx::TensorProto&)> valuesOf);

}  // namespace oriel

#endif  // ORIEL_FRONTEND_CONSTANT_TABLES_H_
