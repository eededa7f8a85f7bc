// How long a collective takes over the levels of links of a cluster (docs/cost_model.md).
#ifndef ORIEL_PASSES_COST_LINK_TIME_H_
#define ORIEL_PASSES_COST_LINK_TIME_H_

#include <cstdint>
#include <vector>

#include "passes/cost/cluster.h"

namespace oriel {

enum class LinkUse {
  kGather,     // all-gather, reduce-scatter, broadcast: once around a ring
  kAllReduce,  // scattered, then gathered; or summed in switches where they can
  kExchange,   // all-to-all: a piece to each other rank
  kTransfer,   // from the first rank to the second
};

// `sentBytes`: what each rank sends by an algorithm that sends no more than it must; of n ranks
// that gather or exchange s bytes, s * (n - 1) / n, twice that where they reduce, and s of a
// transfer. `ranks` ascend.
//
// `groups`: how many such groups use what a domain of devices has to the level above at the same
// time, so that they share it. 0: all devices of the domain do, as where every rank of a grid is
// in some group.
double linkSeconds(const std::vector<LinkLevel>& levels, const std::vector<int64_t>& ranks,
                   LinkUse use, double sentBytes, int64_t groups = 0);

}  // namespace oriel

#endif  // ORIEL_PASSES_COST_LINK_TIME_H_
