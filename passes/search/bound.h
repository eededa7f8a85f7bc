// What a strategy takes at least, from what one stage without data parallelism takes.
#ifndef ORIEL_PASSES_SEARCH_BOUND_H_
#define ORIEL_PASSES_SEARCH_BOUND_H_

#include <vector>

#include "passes/cost/cluster.h"
#include "passes/search/candidate.h"

namespace oriel {

// Of a rank that has the whole model but for tensor parallelism. Seconds and bytes.
struct MicrobatchCost {
  double forward = 0, backward = 0;            // of a microbatch, with its waits for collectives
  double forwardWaits = 0, backwardWaits = 0;  // of these
  double update = 0;                           // of a step, nothing sharded
  double parameters = 0, gradients = 0, optimizerState = 0;
  double stash = 0;  // of a microbatch, between its forward and its backward
  // Of a microbatch, each part between which stages are cut, as the compiler times them for that:
  // not split over tp, with nothing that runs again. None where another's are not known.
  std::vector<double> parts;
};

// Of `candidate` at least, from what is known of another one that is split over no more ranks, and
// has the same policy or keeps everything.
MicrobatchCost leastCost(const MicrobatchCost& known, const Candidate& other,
                         const Candidate& candidate);

struct Bound {
  double seconds = 0;  // of a step
  double bytes = 0;    // of the rank that needs most
};

// What the grid that ends last works and waits in a step, at least, however the parts are cut into
// stages; in works of a microbatch, which has parts of these costs.
double leastRuns(const Candidate& candidate, const std::vector<double>& parts);

// `cost` is of candidates with the same tp, cp, sequence parallelism, micro and remat. All
// communication beside computing that can be, no temporaries. `runs` is leastRuns(), if parts are
// known; as if they were small where that is more.
Bound boundOf(const Candidate& candidate, const MicrobatchCost& cost, const Cluster& cluster,
              double runs = 0);

}  // namespace oriel

#endif  // ORIEL_PASSES_SEARCH_BOUND_H_
