// Finds matrices that a function computes row after row, by forward substitution.
//
// Exporters unroll such a loop: each turn slices a row and those before it, and puts the new row
// into a copy of the matrix. Whatever ops they write this with, the elements tell: they are
// followed from the first matrix on, as sums of products (substitution_terms.h).
#ifndef ORIEL_PASSES_RAISE_SUBSTITUTION_H_
#define ORIEL_PASSES_RAISE_SUBSTITUTION_H_

#include "mlir/IR/Block.h"
#include "passes/raise/match.h"

namespace oriel {

// X = B + B X, or with `negative` B - B X, for each matrix [.., n, n].
struct Substitution {
  mlir::Value base;    // B, which is 0 on and above the diagonal
  mlir::Value result;  // X
  bool negative;
};

// Those of the block, in its order.
llvm::SmallVector<Substitution> findSubstitutions(mlir::Block& block);

}  // namespace oriel

#endif  // ORIEL_PASSES_RAISE_SUBSTITUTION_H_
