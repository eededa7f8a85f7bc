// Queries, keys and values of an attention below what exporters put around them.
#ifndef ORIEL_PASSES_RAISE_ATTENTION_OPERANDS_H_
#define ORIEL_PASSES_RAISE_ATTENTION_OPERANDS_H_

#include "passes/raise/match.h"

namespace oriel {

// An operand below the scales and transposes around it. `source` holds its elements in order; its
// last two dimensions are those of `shape`, the leading ones may be split otherwise.
struct AttentionOperand {
  mlir::Value source;
  llvm::SmallVector<int64_t> shape;  // [b, h, s, d]
  double scale = 1.0;
  bool transposed = false;
  bool sequenceFirst = false;  // `source` holds [b, s, h, d]
  bool swapped = false;  // the last two dimensions of `shape` are those of `source` the other way

  explicit AttentionOperand(mlir::Value value);
  // The value itself, whatever is around it.
  static AttentionOperand asIs(mlir::Value value);

  void swapLastTwo();
  // Takes off the repetition of each of g heads r times in a row, [b, g, t, d] → [b, g, r, t, d] →
  // [b, g * r, t, d], also before heads and positions change places; otherwise gives the operand
  // itself.
  AttentionOperand withoutRepeatedHeads() const;
  mlir::Value materialize(mlir::PatternRewriter& rewriter, mlir::Location loc) const;

 private:
  AttentionOperand() = default;
};

}  // namespace oriel

#endif  // ORIEL_PASSES_RAISE_ATTENTION_OPERANDS_H_
