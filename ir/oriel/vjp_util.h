// Small pieces that the vector-Jacobian products and decompositions of the op families share.
#ifndef ORIEL_IR_ORIEL_VJP_UTIL_H_
#define ORIEL_IR_ORIEL_VJP_UTIL_H_

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

}  // namespace oriel::ir

#endif  // ORIEL_IR_ORIEL_VJP_UTIL_H_
