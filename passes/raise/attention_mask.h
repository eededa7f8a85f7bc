// The mask of an attention, put together from what is done to its scores.
#ifndef ORIEL_PASSES_RAISE_ATTENTION_MASK_H_
#define ORIEL_PASSES_RAISE_ATTENTION_MASK_H_

#include "passes/raise/visible_keys.h"

namespace oriel {

// Terms come with the rank of the scores they belong to: 4 for [b, h, s, t], 3 for [b * h, s, t],
// 5 for [b, g, h / g, s, t].
class AttentionMask {
 public:
  AttentionMask(int64_t batch, int64_t heads, int64_t queries, int64_t keys)
      : batch_(batch), heads_(heads), queries_(queries), keys_(keys) {}

  // A value, times a factor, that is added to the scores.
  void add(mlir::Value added, int64_t rank, double factor = 1);
  // Scores that are `low`, large and negative, instead of what they were. `last`: nothing is added
  // to them any more.
  void hide(const KeyChoice& choice, double low, int64_t rank, bool last);
  // A boolean mask.
  void keep(mlir::Value mask);
  // Causality or a window that the attention has already.
  void structure() { structured_ = true; }
  // A score that nothing hides: of a row that sees nothing, it takes all.
  void sink() { sunk_ = true; }

  // To be called once all terms are there; false if attention can't take them.
  bool resolve();
  bool causal() const { return causal_; }
  int64_t window() const { return window_; }
  // Whether part of it is not a value any more.
  bool isSimpler() const { return simpler_; }
  // What is left, of rank 4; null for nothing.
  mlir::Value make(mlir::PatternRewriter& rewriter, mlir::Location loc, mlir::Type element) const;
  // The queries [b or 1, h or 1, s, 1] that see a key; null if the attention is what it was for all
  // others too. Else these, whose scores are all one number, get the mean of all values, and no
  // cotangent reaches their scores.
  mlir::Value seeing(mlir::PatternRewriter& rewriter, mlir::Location loc) const;

 private:
  struct Hidden {
    KeyChoice choice;
    double low;
    int64_t rank;
    mlir::Value added;  // the value that hides where it was one
    bool last = false;
  };
  struct Added {
    mlir::Value value;
    int64_t rank;
    double factor = 1;
  };
  using Shape = llvm::SmallVector<int64_t>;
  std::optional<Shape> rank4Shape(mlir::ShapedType type, int64_t rank) const;
  mlir::Value toRank4(mlir::PatternRewriter& rewriter, mlir::Location loc, mlir::Value value,
                      int64_t rank) const;

  mlir::Value keptKeys(mlir::PatternRewriter& rewriter, mlir::Location loc,
                       const Hidden& term) const;
  bool finiteIsBoolean() const;
  bool addedMayHide() const;
  bool spreadsEvenly() const;

  int64_t batch_, heads_, queries_, keys_;
  llvm::SmallVector<Hidden> hidden_;  // before resolve() all that choose keys, then what is left
  llvm::SmallVector<Added> added_;
  llvm::SmallVector<Hidden> spread_;  // rows that all of these hide are spread over all keys

  bool structured_ = false, sunk_ = false, causal_ = false, simpler_ = false;
  int64_t window_ = 0;
};

}  // namespace oriel

#endif  // ORIEL_PASSES_RAISE_ATTENTION_MASK_H_
