// Ops that passes, vector-Jacobian products and decompositions make often.
#ifndef ORIEL_IR_ORIEL_BUILDERS_H_
#define ORIEL_IR_ORIEL_BUILDERS_H_

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"

namespace oriel::ir {

// A rank-0 constant with the element type of `like`; it broadcasts to any shape.
mlir::Value scalarConstant(mlir::OpBuilder& builder, mlir::Location loc, double value,
                           mlir::Value like, int64_t origin = -1);

// Transpose of a broadcast: `value` summed over the dimensions that broadcasting `type` to
// the shape of `value` repeats (NumPy's rule: aligned at the last dimension). Returns
// `value` itself where nothing is repeated.
mlir::Value sumToShape(mlir::OpBuilder& builder, mlir::Location loc, mlir::Value value,
                       mlir::Type type);

// `value` with this shape; itself if it has it already.
mlir::Value reshapeTo(mlir::OpBuilder& builder, mlir::Location loc, mlir::Value value,
                      mlir::Type type);

// The elements of `value` from `start` on, `size` of them, along a dimension; itself if these are
// all. With `folds`, what the slice folds to.
mlir::Value sliceDim(mlir::OpBuilder& builder, mlir::Location loc, mlir::Value value, int64_t dim,
                     int64_t start, int64_t size, bool folds = false);

}  // namespace oriel::ir

#endif  // ORIEL_IR_ORIEL_BUILDERS_H_
