// What several blocks keep together, from their options each.
#ifndef ORIEL_PASSES_REMAT_OPTION_PATH_H_
#define ORIEL_PASSES_REMAT_OPTION_PATH_H_

#include <optional>
#include <vector>

#include "passes/remat/block_options.h"

namespace oriel {

// The options of one block, on a convex hull, and how many copies of its stash there are.
struct BlockChoice {
  std::vector<BlockOption> options;
  int64_t copies = 1;
};

// An option of each block.
using OptionPlan = std::vector<size_t>;

// From the first options of all blocks to the last ones, one step of one block at a time: the step
// that takes the least time for a byte comes first, and of equal ones that of the first block,
// which the backward reaches when most of the stash is free again. Each plan is the fastest one
// with as few bytes (multiple-choice knapsack: Sinha and Zoltners 1979).
std::vector<OptionPlan> optionPath(const std::vector<BlockChoice>& choices);

int64_t bytesOf(const std::vector<BlockChoice>& choices, const OptionPlan& plan);
double secondsOf(const std::vector<BlockChoice>& choices, const OptionPlan& plan);

// No choice within so many bytes takes less time: the linear relaxation, where blocks may take
// shares of two options. None if even the smallest options take more bytes.
std::optional<double> leastSeconds(const std::vector<BlockChoice>& choices, int64_t bytes);

}  // namespace oriel

#endif  // ORIEL_PASSES_REMAT_OPTION_PATH_H_
