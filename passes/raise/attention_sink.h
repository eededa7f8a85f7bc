// A score of each head that has no key, but takes its share of the softmax: a sink (OpenAI 2025,
// gpt-oss model card, section 2.2).
#ifndef ORIEL_PASSES_RAISE_ATTENTION_SINK_H_
#define ORIEL_PASSES_RAISE_ATTENTION_SINK_H_

#include <optional>

#include "mlir/IR/PatternMatch.h"
#include "passes/raise/match.h"

namespace oriel {

// The softmax of scores and one column more, whose probabilities are dropped.
class SunkSoftmax {
 public:
  // Nothing unless the value, of rank 4 or 5 [b, h.., s, t], is such a stretch of a softmax, with
  // the same column for all samples and queries.
  static std::optional<SunkSoftmax> match(mlir::Value probabilities);

  mlir::Value scores() const { return scores_; }
  // Of all heads, [h].
  mlir::Value make(mlir::PatternRewriter& rewriter, mlir::Location loc) const;

 private:
  mlir::Value scores_;
  llvm::SmallVector<int64_t> heads_;  // [h] or [g, h / g]
  mlir::DenseElementsAttr numbers_;   // of all heads; or:
  mlir::Value sink_;                  // below its repetition, in order of heads
  llvm::SmallVector<int64_t> sizes_;  // its, of the same rank: each whole or 1
};

// Whether a row that sees nothing leaves all to its sink. A sink that is computed or learned is
// taken not to be as low as what masks hide.
bool takesWhatIsHidden(mlir::Value sink);

}  // namespace oriel

#endif  // ORIEL_PASSES_RAISE_ATTENTION_SINK_H_
