// Where a row of ranks is cut into axes. A cut is the number of pieces on its outer side: a row of
// 8 ranks with the cuts {2} is an outer axis of 2 and an inner one of 4.
#ifndef ORIEL_PASSES_STRATEGY_CUTS_H_
#define ORIEL_PASSES_STRATEGY_CUTS_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace oriel {

// Two cuts that can't both be made, the smaller first: the smaller does not divide the larger.
using CutClash = std::pair<int64_t, int64_t>;

// Sorts the cuts (all above 0) and drops those that come twice. Returns a clash if there is one.
std::optional<CutClash> nestCuts(std::vector<int64_t>* cuts);

// Sizes of the axes, outermost first, that nested cuts make of a row of `size`; {} for a row of 1.
// Every cut divides `size`.
std::vector<int64_t> axisSizes(const std::vector<int64_t>& cuts, int64_t size);

}  // namespace oriel

#endif  // ORIEL_PASSES_STRATEGY_CUTS_H_
