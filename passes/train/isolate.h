// Cutting a block loose from the values of another function that it uses.
#ifndef ORIEL_PASSES_TRAIN_ISOLATE_H_
#define ORIEL_PASSES_TRAIN_ISOLATE_H_

#include "llvm/ADT/STLFunctionalExtras.h"
#include "mlir/IR/Block.h"
#include "mlir/IR/Value.h"
#include "mlir/IR/ValueRange.h"

namespace oriel {

// True for an op that is repeated rather than stored: it has no operands (a constant), its
// result is a view of its operand, or it only makes its operand's elements wider (bf16 to f32), so
// that the operand takes less memory.
bool isFreeToRecompute(mlir::Operation* op);

// Replaces each value that `block` uses but doesn't define. What is free to recompute is
// cloned in front of its first use; for any other value `import` gives the replacement, once.
void isolateBlock(mlir::Block& block, llvm::function_ref<mlir::Value(mlir::Value)> import);

// Erases the ops of `block` whose results nothing uses, but those that make `kept`.
void eraseDeadOps(mlir::Block& block, mlir::ValueRange kept = {});

}  // namespace oriel

#endif  // ORIEL_PASSES_TRAIN_ISOLATE_H_
