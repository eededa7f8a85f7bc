// What a block can keep and compute again: the options on the convex hull of bytes and seconds.
#ifndef ORIEL_PASSES_REMAT_BLOCK_OPTIONS_H_
#define ORIEL_PASSES_REMAT_BLOCK_OPTIONS_H_

#include <vector>

#include "passes/remat/stash_graph.h"

namespace oriel {

struct BlockOption {
  Recomputation edit;
  int64_t bytes = 0;   // in the stash, of what the block could drop or add
  double seconds = 0;  // of what runs again
};

// All options for which no mixture of two others keeps fewer bytes in less time, by falling bytes
// and growing seconds. The first drops what takes no time to make again, the last keeps as little
// as there can be. What to keep for the least of
//   a * bytes + b * seconds
// is a minimum cut between what is at hand and what the backward reads: a value on the cut is kept,
// an op behind it runs again. Each vertex of the hull is the answer for some a and b, and they are
// found by asking for the slope between two known ones (Cohon et al. 1979).
//
// A value that other blocks would have to keep too counts for each with its share of the bytes:
// `shares`, by value, is how many.
std::vector<BlockOption> blockOptions(const StashGraph& graph, int64_t block,
                                      const std::vector<int>& shares);

// By value: of how many blocks it is a leaf, which is neither in the stash nor made in the block.
// At least 1.
std::vector<int> leafShares(const StashGraph& graph);

}  // namespace oriel

#endif  // ORIEL_PASSES_REMAT_BLOCK_OPTIONS_H_
