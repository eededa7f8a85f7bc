// Attention heads apart from and merged into the hidden dimension.
#ifndef ORIEL_FRONTEND_OPS_HEADS_H_
#define ORIEL_FRONTEND_OPS_HEADS_H_

#include "frontend/node_importer.h"

namespace oriel {

// [b, s, h d] -> [b, h, s, d]; an error where `heads` does not divide the last dimension.
mlir::Value splitHeads(NodeImporter& n, mlir::Value x, int64_t heads);
// [b, h, s, d] -> [b, s, h d]
mlir::Value mergeHeads(NodeImporter& n, mlir::Value x);

}  // namespace oriel

#endif  // ORIEL_FRONTEND_OPS_HEADS_H_
