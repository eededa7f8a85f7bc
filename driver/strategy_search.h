// The strategy that a model is trained with fastest on a cluster, where the user does not say it.
#ifndef ORIEL_DRIVER_STRATEGY_SEARCH_H_
#define ORIEL_DRIVER_STRATEGY_SEARCH_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "driver/simulation.h"
#include "driver/vocabulary.h"
#include "passes/search/search.h"

namespace oriel::driver {

struct StrategySearch {
  SimulationOptions simulation;
  Pins pins;
  int64_t wanted = 1;            // so many of the best
  bool explain = false;          // also what is next to the best
  std::optional<int64_t> ranks;  // none: all devices of the cluster
  bool isSmallest = false;       // of the worlds in which something fits, the smallest
  // Seconds, after which it ends with what was found, as soon as something fits.
  std::optional<double> timeLimit;
};

struct FoundStrategies {
  SearchProblem problem;
  SearchResult result;  // has found() something
  double seconds = 0;   // that the search took

  const TriedStrategy& best() const { return result.tried.front(); }
};

// ResourceExhausted if nothing fits; the message says what is missing, and with how many nodes
// something would fit. InvalidArgument for pins that can't be, and what simulate() fails with.
absl::StatusOr<FoundStrategies> findStrategies(const StrategySearch& search,
                                               const Vocabulary& vocabulary);

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_STRATEGY_SEARCH_H_
