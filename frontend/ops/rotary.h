// Rotary embedding by a table of angles.
#ifndef ORIEL_FRONTEND_OPS_ROTARY_H_
#define ORIEL_FRONTEND_OPS_ROTARY_H_

#include "frontend/node_importer.h"

namespace oriel {

struct Rotary {
  mlir::Value cos, sin;  // [positions, pairs]
  mlir::Value at;        // [b, s] or [1, s]: a row for each token; null: the first s
  bool isInterleaved = false;
};

// x: [b, h, s, d], of which the first 2 · pairs of each head are turned. Null, with an error, for
// tables that don't fit.
mlir::Value rotate(NodeImporter& n, mlir::Value x, const Rotary& rotary);

// Rotary::at for `positions` [b, s], or, where they are one element, the first token's.
mlir::FailureOr<mlir::Value> rowsOf(NodeImporter& n, mlir::Value positions, int64_t tokens);

}  // namespace oriel

#endif  // ORIEL_FRONTEND_OPS_ROTARY_H_
