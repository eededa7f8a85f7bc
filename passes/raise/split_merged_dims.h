// Dimensions that one reshape merges and another one, further down, splits again.
//
//   [4, 24, 8, 8] → [24, 32, 8], product, [24, 32, 24] → [24, 4, 8, 24]
#ifndef ORIEL_PASSES_RAISE_SPLIT_MERGED_DIMS_H_
#define ORIEL_PASSES_RAISE_SPLIT_MERGED_DIMS_H_

#include "mlir/IR/PatternMatch.h"

namespace oriel {

// Patterns that let the two meet and vanish, so that what is in between has the dimensions apart:
// splits go up, before the ops in between, and merges down where that meets a split.
void addSplitMergedDims(mlir::RewritePatternSet& patterns);

}  // namespace oriel

#endif  // ORIEL_PASSES_RAISE_SPLIT_MERGED_DIMS_H_
