// Where to cut a row of parts into stages.
#ifndef ORIEL_PASSES_STAGE_BALANCE_H_
#define ORIEL_PASSES_STAGE_BALANCE_H_

#include <cstdint>
#include <functional>
#include <vector>

namespace oriel {

// Cuts a row of parts with these costs into `stages` (at most as many as parts, at least one),
// none empty; stage s is on grid s mod `grids`, which divides `stages`. Returns the first part of
// each stage. With a stage on each grid, the cost of the most expensive one is the least that is
// possible, and the sum of their squares the least with that. With several, what improvedCuts()
// (cut_moves.h) finds from there, for the sums of the grids.
std::vector<int64_t> balancedCuts(const std::vector<double>& costs, int64_t stages, int64_t grids);

// The least, of all ways to cut the parts into `stages`, that the largest total of a stage can be,
// by what the stages before it cost together and by its own cost.
double leastLargest(const std::vector<double>& costs, int64_t stages,
                    const std::function<double(double before, double own)>& total);

// Of the stages that begin there, by grid.
std::vector<double> gridCosts(const std::vector<double>& costs, const std::vector<int64_t>& firsts,
                              int64_t grids);

}  // namespace oriel

#endif  // ORIEL_PASSES_STAGE_BALANCE_H_
