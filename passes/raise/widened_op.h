// One op for equal ops on several pieces, by its sharding rule.
//
// Along a parallel factor of its rule, an op can be cut into pieces that are the same op on pieces
// of its operands: rows of a linear layer, samples of an attention or of a convolution. So equal
// ops are the pieces of one, if the pieces of their operands are brought together along a factor.
#ifndef ORIEL_PASSES_RAISE_WIDENED_OP_H_
#define ORIEL_PASSES_RAISE_WIDENED_OP_H_

#include <optional>

#include "passes/raise/stack.h"

namespace oriel {

// Computes `piece` for all pieces. Of each operand there is a stack of `count` pieces, or nothing
// where all have the one of `piece`. `isUsed` says which results are wanted. Gives their stacks, or
// nothing where no factor of the rule will do; then nothing is made. What is shared is repeated if
// need be, up to the size of what the pieces have.
std::optional<llvm::SmallVector<std::optional<Stack>>> widen(
    StackBuilder& builder, mlir::Operation* piece, int64_t count,
    llvm::ArrayRef<std::optional<Stack>> operands, llvm::function_ref<bool(unsigned)> isUsed);

}  // namespace oriel

#endif  // ORIEL_PASSES_RAISE_WIDENED_OP_H_
