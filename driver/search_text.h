// What a search found, for people and for scripts.
#ifndef ORIEL_DRIVER_SEARCH_TEXT_H_
#define ORIEL_DRIVER_SEARCH_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "driver/strategy_search.h"
#include "driver/this_machine.h"

namespace oriel::driver {

// With three digits: "41.2 ms".
std::string secondsText(double seconds);
// "41.2", of 0.412.
std::string percentText(double share);

// "tp=2: +31 % (waits for collectives 0.1 → 0.8 s over NVLink)": what `other` is beside the best.
std::string reasonText(const TriedStrategy& best, const TriedStrategy& other,
                       const Cluster& cluster);

// The fastest strategies as a table of at most so many rows, and why each neighbour of the first is
// not chosen.
std::string searchText(const FoundStrategies& found, int64_t rows);
// One line: what was chosen, of how many, in what time.
std::string choiceText(const FoundStrategies& found);
// `machine` where no cluster was given.
std::string searchJson(const FoundStrategies& found, int64_t rows,
                       const std::optional<ThisMachine>& machine);

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_SEARCH_TEXT_H_
