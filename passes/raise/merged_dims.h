// Dimensions that a reshape merged, and what they were before.
#ifndef ORIEL_PASSES_RAISE_MERGED_DIMS_H_
#define ORIEL_PASSES_RAISE_MERGED_DIMS_H_

#include "passes/raise/match.h"

namespace oriel {

// The sizes h > 1 into which a dimension of n elements splits as [n / h, h] without a copy, seen
// from where it was merged: ascending; n is one where a dimension of size 1 was merged with it.
// Looks through all ops that leave the dimension as it is.
//
//   reshape [24, 4, 64] → [24, 32, 8], transpose → [32, 24, 8]: dimension 0 has the sizes {8}
//   reshape [24, 1, 64] → [24, 8, 8], transpose → [8, 24, 8]: {8}
llvm::SmallVector<int64_t> mergedSizes(mlir::Value value, int64_t dim);

// A reshape in two steps: dimensions are split, and then neighbours are merged.
//
//   [24, 4, 64] → [24, 32, 8] has the sizes [24, 4, 8, 8], of which 1 and 2 are merged
struct SplitThenMerge {
  llvm::SmallVector<int64_t> sizes;                      // after the first step
  llvm::SmallVector<llvm::SmallVector<int64_t>> merged;  // of `sizes`, for each of the result

  bool merges() const;
};

// Nothing where a size straddles two dimensions of the other side.
std::optional<SplitThenMerge> splitThenMerge(ir::ReshapeOp op);

}  // namespace oriel

#endif  // ORIEL_PASSES_RAISE_MERGED_DIMS_H_
