// Cotangents of slices of one tensor, joined instead of padded and added.
#ifndef ORIEL_PASSES_TRAIN_JOIN_PADS_H_
#define ORIEL_PASSES_TRAIN_JOIN_PADS_H_

#include "llvm/ADT/SmallVector.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"

namespace oriel {

// Whether the value is a slice's cotangent that joinPads may take: a tensor with zeros before and
// behind it along one dimension, of which nothing else has been made yet.
bool isPaddedSlice(mlir::Value value);

// Values with the same sum as `padded`, for all of which isPaddedSlice holds and which have one
// type: those that lie side by side are one concatenation, padded with what zeros are left, if any.
// What was padded alone is erased. New ops are made at the builder's insertion point.
llvm::SmallVector<mlir::Value> joinPads(mlir::OpBuilder& builder, mlir::Location loc,
                                        llvm::ArrayRef<mlir::Value> padded);

}  // namespace oriel

#endif  // ORIEL_PASSES_TRAIN_JOIN_PADS_H_
