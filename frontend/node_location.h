// Where a node of the model comes from, as MLIR locations.
//
// The location of an op is loc("NODE"("MODULE")): the ONNX node's name around the path of the
// PyTorch module that computed it, where the exporter wrote that down; else loc("NODE").
#ifndef ORIEL_FRONTEND_NODE_LOCATION_H_
#define ORIEL_FRONTEND_NODE_LOCATION_H_

#include <string>

#include "mlir/IR/Location.h"

namespace onnx {
class NodeProto;
}

namespace oriel {

// "model.language_model.layers.0.mlp"; empty where nothing is known or the node is at the top.
// Read from the metadata of PyTorch's exporter, or from a node name such as "/model/layers.0/Add".
std::string modulePath(const onnx::NodeProto& node);

// The node's name, or its first output's where it has none.
std::string nodeName(const onnx::NodeProto& node);

mlir::Location nodeLocation(mlir::MLIRContext* context, const onnx::NodeProto& node);

// The way back: the names in a location made above (empty where there are none). A fused location
// answers for its first part.
std::string nodeNameOf(mlir::Location location);
std::string modulePathOf(mlir::Location location);

}  // namespace oriel

#endif  // ORIEL_FRONTEND_NODE_LOCATION_H_
