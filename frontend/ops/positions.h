// Positions of elements and rows in a flattened tensor, from ONNX's indices.
#ifndef ORIEL_FRONTEND_OPS_POSITIONS_H_
#define ORIEL_FRONTEND_OPS_POSITIONS_H_

#include "frontend/node_importer.h"

namespace oriel {

// 0, 1, .. along dimension `dim` of a shape, with the element type of `like`.
mlir::Value iotaLike(NodeImporter& n, mlir::Value like, llvm::ArrayRef<int64_t> shape, int64_t dim);

// Operand `index` as axes, or 0, 1, .. `count` where it is left out.
mlir::FailureOr<Ints> axesOperand(NodeImporter& n, unsigned index, size_t count, int64_t rank);

// `index` plus `size` where it is negative.
mlir::Value wrapNegative(NodeImporter& n, mlir::Value index, int64_t size);

// Whether they are the largest along the axis of a tensor that is as long there as `data`: in
// range, and none twice.
bool areOfTopk(mlir::Value indices, mlir::Value data, int64_t axis);

// Whether they are along the last dimension, for all of the others: then gather and scatter_add
// take them as they are, with batch dimensions.
bool areInRows(mlir::Value indices, mlir::Value data, int64_t axis);

// For GatherElements and ScatterElements: indices that are the same for all elements of the
// dimensions behind the axis, as `index[.., None].expand(..)` makes them, without these dimensions:
// they name rows [.., k] of data [.., n, ..]. Null for others, for constants, and where the
// dimensions in front of the axis are not those of `data`, or those behind it reach beyond.
mlir::Value rowIndices(NodeImporter& n, mlir::Value indices, mlir::Value data, int64_t axis);

// For GatherElements and ScatterElements: indices[i, j] is a position along `axis`, the other
// coordinates are its own. Positions in the flattened `data`, in the shape of `indices`; null, with
// an error, where the ranks differ or a constant index does not exist. One that turns out at run
// time not to exist becomes a position that the kernels refuse; so in rowPositions.
mlir::Value elementPositions(NodeImporter& n, mlir::Value indices, mlir::Value data, int64_t axis);

// For GatherND and ScatterND: indices[.., :] are coordinates in the dimensions after the first
// `batch` ones, which indices and data have in common.
struct RowPositions {
  mlir::Value positions;  // [..]; null, with an error, where the shapes don't fit
  int64_t depth = 0;      // how many dimensions of the data the positions count
};
RowPositions rowPositions(NodeImporter& n, mlir::Value indices, mlir::Value data, int64_t batch);

// `data` with its first `depth` dimensions made one.
mlir::Value asRows(NodeImporter& n, mlir::Value data, int64_t depth);

}  // namespace oriel

#endif  // ORIEL_FRONTEND_OPS_POSITIONS_H_
