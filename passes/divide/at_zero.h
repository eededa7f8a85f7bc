// What ops make of zeros, and of what is made of zeros: behind the true heads or columns of a
// block.
#ifndef ORIEL_PASSES_DIVIDE_AT_ZERO_H_
#define ORIEL_PASSES_DIVIDE_AT_ZERO_H_

#include <optional>

#include "ir/oriel/oriel.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace oriel {

// Whether it and its derivatives are finite where operands are zero that it is not linear in. Not
// for ops that are not known.
bool isSmoothAtZero(mlir::Operation* op);

// Whether it gives zero where these operands, which it is not linear in, are zero.
bool givesZero(mlir::Operation* op, llvm::function_ref<bool(mlir::Value)> isZero);

// The operand of an op that is finite, with its derivatives, where that is above zero.
std::optional<unsigned> operandAboveZero(mlir::Operation* op);

// What a pointwise op makes of such numbers; none where one is not known, or the op does not fold.
std::optional<double> valueOf(mlir::Operation* op,
                              llvm::function_ref<std::optional<double>(mlir::Value)> numberOf);

}  // namespace oriel

#endif  // ORIEL_PASSES_DIVIDE_AT_ZERO_H_
