// Changes of cuts of a row of parts into stages, none of which may be empty.
//
// Cuts are the first part of each stage, in order.
#ifndef ORIEL_PASSES_STAGE_CUT_MOVES_H_
#define ORIEL_PASSES_STAGE_CUT_MOVES_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace oriel {

// With a part less in one stage and one more in the other; what is between moves along. None if
// that leaves a stage empty.
std::optional<std::vector<int64_t>> withPartMoved(std::vector<int64_t> firsts, int64_t parts,
                                                  int64_t from, int64_t to);

// Moves a part between two stages, and where grids have several (stage s is on grid s mod `grids`)
// another one back between two others of these grids, or none, as long as `isBetter` says of some
// such change that the cuts are better than those that it said it of before. It says nothing where
// no more are to be tried.
std::vector<int64_t> improvedCuts(
    std::vector<int64_t> firsts, int64_t parts, int64_t grids,
    const std::function<std::optional<bool>(const std::vector<int64_t>&)>& isBetter);

}  // namespace oriel

#endif  // ORIEL_PASSES_STAGE_CUT_MOVES_H_
