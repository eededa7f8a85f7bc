// Follows what exporters write for the true positions of a mask: their list, and their number.
#ifndef ORIEL_FRONTEND_MASK_MATCHER_H_
#define ORIEL_FRONTEND_MASK_MATCHER_H_

#include "frontend/graph.h"

namespace oriel {

class MaskMatcher {
 public:
  explicit MaskMatcher(const Graph& graph) : graph_(graph) {}

  // The mask whose true positions, one per row, this value lists; empty if it is nothing like it.
  llvm::StringRef maskOfIndices(llvm::StringRef value) const;

  // The mask before it was given trailing dimensions.
  llvm::StringRef beforeBroadcast(llvm::StringRef mask) const;

  // Whether the values are one, or computed alike from the same: a program may make a mask twice.
  bool isSame(llvm::StringRef a, llvm::StringRef b) const { return isSame(a, b, kDepth); }

  // Whether the value is the number of true positions of the mask, whatever its rank.
  bool isCount(llvm::StringRef value, llvm::StringRef mask) const;
  // The same, as the sum of the mask, perhaps flattened.
  bool isSumOf(llvm::StringRef value, llvm::StringRef mask) const;

  // Whether the value is [-1].
  bool isMinusOne(llvm::StringRef value) const;
  // Before copies of the value, and a dimension that was added and removed.
  llvm::StringRef skipCopies(llvm::StringRef value) const;

 private:
  static constexpr int kDepth = 6;        // of computations to be compared
  static constexpr int kMaxOperands = 2;  // of each

  bool isSame(llvm::StringRef a, llvm::StringRef b, int depth) const;
  bool isUndone(const Graph::Node* node) const;
  llvm::StringRef skipOneElement(llvm::StringRef value) const;
  llvm::StringRef maskOfNonZero(llvm::StringRef value) const;
  bool isCountDim(const Graph::Node* shape, int64_t dim, llvm::StringRef mask) const;

  const Graph& graph_;
};

}  // namespace oriel

#endif  // ORIEL_FRONTEND_MASK_MATCHER_H_
