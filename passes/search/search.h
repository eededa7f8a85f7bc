// The search: which strategy of the space takes least, by a simulation of those that might.
//
// Best first. Each group of candidates with the same work per microbatch has a bound
// (group_costs.h); the lowest is made exact by a simulation of one stage with nothing sharded,
// which gives its candidates bounds (bound.h), and of these the lowest are simulated. It ends when
// no bound is lower than what was found, so that nothing in the space is faster if the bounds hold.
// Then what differs from the best in one choice is looked at, also what is not in the space; a long
// search does so before it ends, too.
#ifndef ORIEL_PASSES_SEARCH_SEARCH_H_
#define ORIEL_PASSES_SEARCH_SEARCH_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "passes/search/bound.h"
#include "passes/search/space.h"

namespace oriel {

// What a simulation says of a strategy.
struct Evaluation {
  struct Program {
    std::string name, stages;
    int64_t ranks = 1;
    double computing = 0, communicating = 0, idle = 0;  // seconds of a step
    std::vector<double> bytes;                          // of a rank at its peak, by use

    double peakBytes() const;
  };

  double seconds = 0;  // of a step
  double mfu = 0, hfu = 0, bubble = 0;
  double exposed = 0;         // share of the step
  MicrobatchCost microbatch;  // of a strategy with one stage
  std::vector<Program> programs;

  double peakBytes() const;
};

// Of each strategy, in their order; an error is of that strategy alone. The same whenever asked.
using Evaluate =
    std::function<std::vector<absl::StatusOr<Evaluation>>(const std::vector<Strategy>&)>;

struct TriedStrategy {
  Candidate candidate;
  Evaluation evaluation;
  bool fits = false;
  double bound = 0;  // seconds; what it takes at least, before it was simulated
};

struct SearchOptions {
  enum class Objective {
    kTime,
    kFit,  // ends with the first that fits, in the order of what they need
  };
  Objective objective = Objective::kTime;
  int64_t wanted = 1;            // that many best ones are found
  int64_t mostSimulated = 2000;  // ends then, with what was found
  // Of those that take so much more than the fastest, the ones with the simplest structure (fewer
  // stages, tensor- and context-parallel ranks, pieces of stages) are the best, and of these the
  // simplest that takes so much more than their fastest: the simulator is no finer, and takes
  // communication beside computing for free.
  double structureTolerance = 0.02;
  double tolerance = 0.005;
  bool explain = false;  // all neighbours of the fastest are simulated
  // Asked between simulations once something fits: whether to end with what was found.
  std::function<bool()> isTimeUp = [] { return false; };
};

struct SearchResult {
  std::vector<TriedStrategy>
      tried;               // that fit, fastest first; then those that don't, smallest first
  int64_t candidates = 0;  // of the space
  int64_t impossible = 0;  // of those, that need more memory at least, or as much as one that does
                           // not fit, or can't be compiled
  int64_t simulated = 0;   // strategies, those of groups included
  int64_t refused = 0;     // of these, that can't be compiled
  absl::Status firstRefusal;
  bool isWhole = true;                    // nothing else of the space can be faster, by the bounds
  bool isSelectiveNone = false;           // remat `selective` has nothing to compute again
  double leastBytes = 0;                  // that a candidate needs at least, by its bound
  std::vector<TriedStrategy> neighbours;  // of the best, in the order of neighboursOf()

  bool found() const { return !tried.empty() && tried.front().fits; }
};

// The same for the same arguments. Where nothing fits, found() is false. The first error if nothing
// can be simulated; InvalidArgument if the space is empty.
absl::StatusOr<SearchResult> searchStrategies(const SearchProblem& problem,
                                              const SearchOptions& options,
                                              const Evaluate& evaluate);

}  // namespace oriel

#endif  // ORIEL_PASSES_SEARCH_SEARCH_H_
