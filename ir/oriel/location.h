// Where in the model an op is from.
#ifndef ORIEL_IR_ORIEL_LOCATION_H_
#define ORIEL_IR_ORIEL_LOCATION_H_

#include <string>

#include "mlir/IR/Operation.h"

namespace oriel::ir {

// "node [module]", "node" where the module is not known; empty for what is from no ONNX node.
std::string locationText(mlir::Location location);

// The number of a forward op (attribute `origin`), -1 if it has none; a backward op has its forward
// op's.
int64_t originOf(mlir::Operation* op);

// For messages: "oriel.linear of node_7 [model.layers.0.fc1]".
std::string opText(mlir::Operation* op);

}  // namespace oriel::ir

#endif  // ORIEL_IR_ORIEL_LOCATION_H_
