// Where the ranks of a pipeline's grids are on the cluster (docs/strategy.md).
#ifndef ORIEL_PASSES_STRATEGY_PLACEMENT_H_
#define ORIEL_PASSES_STRATEGY_PLACEMENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace oriel {

// The axis in which the farthest devices differ. Ranks are numbered grid by grid either way.
enum class Placement {
  kPpOutermost,  // one grid behind the other
  kDpOutermost,  // the tensor-parallel ranks of each grid in turn: stages are neighbours
};

// Of both, in their order.
const std::vector<std::string>& placementNames();
const std::string& placementName(Placement placement);
// InvalidArgument for another name, with the nearest one.
absl::StatusOr<Placement> parsePlacement(const std::string& name);

// The device of each rank, numbered through node by node as in Cluster. By default rank k has
// device k.
//
//   RankPlaces{/*grids=*/2, /*ranks=*/4, /*block=*/2}   ranks 0 1 2 3 | 4 5 6 7
//                                                       are at 0 1 4 5 | 2 3 6 7
struct RankPlaces {
  int64_t grids = 1;
  int64_t ranks = 1;  // of each grid; of one grid any number
  int64_t block = 1;  // neighbours of each grid in turn; divides `ranks`

  bool areRanks() const { return grids == 1 || block == ranks; }
  // Ascends within a grid.
  int64_t of(int64_t rank) const {
    if (areRanks()) return rank;
    const int64_t grid = rank / ranks, own = rank % ranks;
    return own / block * block * grids + grid * block + own % block;
  }
  // The rank that is there.
  int64_t rankAt(int64_t place) const {
    if (areRanks()) return place;
    const int64_t blocks = place / block;
    return blocks % grids * ranks + blocks / grids * block + place % block;
  }
};

}  // namespace oriel

#endif  // ORIEL_PASSES_STRATEGY_PLACEMENT_H_
