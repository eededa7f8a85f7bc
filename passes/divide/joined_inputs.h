// Linear layers of what a model has joined, such as attention and MLP side by side.
#ifndef ORIEL_PASSES_DIVIDE_JOINED_INPUTS_H_
#define ORIEL_PASSES_DIVIDE_JOINED_INPUTS_H_

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/strategy/strategy.h"

namespace oriel {

// A layer on tensor-parallel ranks whose input is a concatenation of columns becomes the sum of
// products with slices of its weight, where pieces of some of what is joined are made of
// parameters' pieces: the columns of a rank are not those of one piece. Whether there was any.
//
//   linear(concat(a, b), w) → linear(a, w[:n]) + linear(b, w[n:])
bool splitJoinedInputs(mlir::func::FuncOp main, const Strategy& strategy);

}  // namespace oriel

#endif  // ORIEL_PASSES_DIVIDE_JOINED_INPUTS_H_
