// Cotangents of slices of one tensor, joined instead of padded and added.
#ifndef ORIEL_PASSES_TRAIN_JOIN_PADS_H_
#define ORIEL_PASSES_TRAIN_JOIN_PADS_H_

#include "llvm/ADT/SmallVector.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"

namespace oriel {

// Whether the value is a slice's cotangent that joinPads may take: a tensor with zeros before and
// behind it along one dimension.
bool isPaddedSlice(mlir::Value value);

// Gives `add` values with the same sum as `padded`, for all of which isPaddedSlice holds and which
// have one type: those that lie side by side are one concatenation, padded with what zeros are
// left, if any; what is padded alone is padded again, here. Each is made at the builder's insertion
// point just before it is given. What was padded stays: it may be a cotangent of other values, too.
void joinPads(mlir::OpBuilder& builder, mlir::Location loc, llvm::ArrayRef<mlir::Value> padded,
              llvm::function_ref<void(mlir::Value)> add);

}  // namespace oriel

#endif  // ORIEL_PASSES_TRAIN_JOIN_PADS_H_
