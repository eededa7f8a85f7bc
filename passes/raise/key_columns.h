// Biases of scores that a query has for each row and each column of an image of keys, as decomposed
// relative positions are (Li et al. 2022, "MViTv2", equation 4).
#ifndef ORIEL_PASSES_RAISE_KEY_COLUMNS_H_
#define ORIEL_PASSES_RAISE_KEY_COLUMNS_H_

#include <optional>
#include <utility>
#include <vector>

#include "mlir/IR/PatternMatch.h"
#include "passes/raise/match.h"

namespace oriel {

// What a query adds to its scores, a number for each of a few groups of keys. As further columns of
// queries, times columns of keys that tell the groups, it needs no memory of all scores.
class KeyColumns {
 public:
  // Nothing unless the value, added to scores [.., queries, keys], is a sum of such numbers.
  static std::optional<KeyColumns> match(mlir::Value added, int64_t keys);

  int64_t count() const;
  // Of `rows` queries with all heads and samples: whether each has its own.
  bool isOf(int64_t rows) const;
  // [leading.., some], in parts; each divided by the attention's scale.
  llvm::SmallVector<mlir::Value> ofQueries(mlir::PatternRewriter& rewriter, mlir::Location loc,
                                           llvm::ArrayRef<int64_t> leading, double scale) const;
  // [keys, count]: 1 where a key is of the group.
  mlir::Value ofKeys(mlir::PatternRewriter& rewriter, mlir::Location loc) const;

 private:
  using Shape = llvm::SmallVector<int64_t>;
  // A summand; it has the leading dimensions or ones, and of the keys' some, else ones.
  struct Term {
    mlir::Value value;
    Shape shape;  // of the rank of all
  };
  bool addTerms(mlir::Value value);
  llvm::ArrayRef<int64_t> keyDims(llvm::ArrayRef<int64_t> shape) const {
    return shape.drop_front(leading_.size());
  }

  Shape leading_, keyDims_;
  std::vector<Term> terms_;
};

// The widest head that attention kernels take in f32 and bf16.
inline constexpr int64_t kMaxColumns = 256;

// Queries [b, h, s, d] and keys [b, g, t, d] with the columns behind theirs, for an attention of
// this scale.
std::pair<mlir::Value, mlir::Value> addColumns(mlir::PatternRewriter& rewriter, mlir::Location loc,
                                               mlir::Value queries, mlir::Value keys,
                                               llvm::ArrayRef<KeyColumns> columns, double scale);

}  // namespace oriel

#endif  // ORIEL_PASSES_RAISE_KEY_COLUMNS_H_
