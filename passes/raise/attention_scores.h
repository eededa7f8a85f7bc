// What leads from the product of queries and keys to the probabilities of an attention.
#ifndef ORIEL_PASSES_RAISE_ATTENTION_SCORES_H_
#define ORIEL_PASSES_RAISE_ATTENTION_SCORES_H_

#include <optional>
#include <utility>

#include "passes/raise/attention_operands.h"
#include "passes/raise/match.h"
#include "passes/raise/visible_keys.h"

namespace oriel {

// The softmax of which a value has what a mask shows, and 0 elsewhere.
std::optional<std::pair<ir::SoftmaxOp, KeyChoice>> matchShownSoftmax(mlir::Value value);
// The softmax that a value is, with or without NaN replaced by 0.
ir::SoftmaxOp matchSoftmax(mlir::Value value);

// A value of which `value` splits or merges the leading dimensions, or `value` itself.
mlir::Value withoutSplit(mlir::Value value);

// The product of one side of attention: of matrices, or of all heads' rows [b, h, s, d] with the
// one matrix [b, t, d] of their batch (multi-query attention, Shazeer 2019), or of groups' rows
// [b, g, h / g, s, d] with matrices [b, g, t, d].
bool hasSharedMatrix(ir::MatmulOp op);
ir::MatmulOp matchSide(mlir::Value value);
// Keys or values of such a product: a matrix that all heads share is that of one head.
AttentionOperand keysOrValues(ir::MatmulOp side);

// Scores of an attention: a product of queries and keys, and what is done to it.
struct Scores {
  struct Added {
    mlir::Value value;
    int64_t rank;       // of the scores it is added to
    double factor = 1;  // by which the sum is scaled
  };
  struct Replaced {
    KeyChoice choice;
    double low;
    int64_t rank;
    bool last;  // nothing is added behind it
  };
  // A temperature that is learned, say, of each head or of all.
  struct Factor {
    mlir::Value value;
    bool divides;
  };
  ir::MatmulOp product;
  bool transposed = false;  // the product is one of keys and queries
  double scale = 1.0, softcap = 0.0;
  llvm::SmallVector<Factor> factors;
  llvm::SmallVector<Added> added;
  llvm::SmallVector<Replaced> replaced;
  llvm::SmallVector<int64_t> heads;  // [b, h] where the scores have rank 4 or 5 somewhere

  // Whether nothing but scales and masks is behind what is left of them.
  bool onlyScaled() const { return !transposed && factors.empty() && softcap == 0; }

  // Where probabilities of this rank are 0 once more where the only mask has hidden the scores, the
  // lowest number is as good as -infinity: a row that sees nothing is 0.
  bool hideAgain(const KeyChoice& choice, int64_t rank);

  // Whether scores of this shape have the same batch and heads as others before.
  bool addHeads(llvm::ArrayRef<int64_t> shape);
};

// Follows scores back to their product: masks first, then the cap, then scales. What is added may
// be scaled with the scores.
std::optional<Scores> matchScores(mlir::Value value);

}  // namespace oriel

#endif  // ORIEL_PASSES_RAISE_ATTENTION_SCORES_H_
