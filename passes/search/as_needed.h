// What a step may take with `remat: auto`, of what `none` and `full` take.
#ifndef ORIEL_PASSES_SEARCH_AS_NEEDED_H_
#define ORIEL_PASSES_SEARCH_AS_NEEDED_H_

#include "passes/search/search.h"

namespace oriel {

// About, in seconds: of a strategy that needs more than `memory` bytes with `none` and fits with
// `full`. `atLeast` is a bound of `none`, which may have been simulated with less overlap than its
// memory would allow. What takes least for its bytes runs again first, so that the time grows about
// as the square of the bytes that have to go, from that of `full` without what it runs again: it
// waits for the same collectives.
double secondsAsNeeded(const Evaluation& none, const Evaluation& full, double atLeast,
                       double memory);

}  // namespace oriel

#endif  // ORIEL_PASSES_SEARCH_AS_NEEDED_H_
