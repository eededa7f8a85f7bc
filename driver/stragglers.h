// Ranks that compute slower than the others, for a simulation.
#ifndef ORIEL_DRIVER_STRAGGLERS_H_
#define ORIEL_DRIVER_STRAGGLERS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace oriel::driver {

// How many times as long a rank computes as the cluster's device; 1 for the ranks that are not
// there.
using Stragglers = std::map<int64_t, double>;

// Of words RANK=FACTOR. InvalidArgument, naming the word, for one that is malformed, a factor below
// 1, a rank that `ranks` does not have, and one that is given twice.
absl::StatusOr<Stragglers> parseStragglers(const std::vector<std::string>& words, int64_t ranks);

// Of the slowest of `count` ranks from `first` on: those of a program wait for each other.
double slowdownOf(const Stragglers& stragglers, int64_t first, int64_t count);

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_STRAGGLERS_H_
