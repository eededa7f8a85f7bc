// Which pointwise ops of a segment run as one launch.
#ifndef ORIEL_PASSES_GENERATE_CHAINS_H_
#define ORIEL_PASSES_GENERATE_CHAINS_H_

#include <vector>

#include "llvm/ADT/SmallVector.h"
#include "mlir/IR/Block.h"
#include "passes/generate/joined_rule.h"

namespace oriel {

// Ops that become one launch where the last of them stands.
struct Chain {
  std::vector<mlir::Operation*> ops;        // in their order
  llvm::SmallVector<mlir::Value> operands;  // values that they take from outside, each once
  llvm::SmallVector<mlir::Value> results;   // values of theirs that others use
  RuleAndSplit rule;
};

// Whether generated code can compute the op: it is pointwise or reduces rows, on types that such
// code takes, and says how it computes an element.
bool canGenerate(mlir::Operation* op);

// Chains of a segment's block: of two ops and more, or of one that is approximated. None of what
// nobody reads.
std::vector<Chain> findChains(mlir::Block& block);

}  // namespace oriel

#endif  // ORIEL_PASSES_GENERATE_CHAINS_H_
