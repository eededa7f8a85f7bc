// Initializers that are tables computed by the exporter, not weights, where its metadata is silent.
#ifndef ORIEL_FRONTEND_CONSTANT_TABLES_H_
#define ORIEL_FRONTEND_CONSTANT_TABLES_H_

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"

namespace onnx {
class GraphProto;
}  // namespace onnx

namespace oriel {

// Names of the float initializers of a graph that training must leave alone, judged by their use:
// - frequencies: a vector whose products only become the arguments of sines and cosines;
// - tables of rotary embeddings: if `isFolded` (the exporter computed it from others), what scales
//   elements of two or more dimensions. Learned factors are vectors.
llvm::StringSet<> findConstantTables(const onnx::GraphProto& graph,
                                     llvm::function_ref<bool(llvm::StringRef)> isFolded);

}  // namespace oriel

#endif  // ORIEL_FRONTEND_CONSTANT_TABLES_H_
