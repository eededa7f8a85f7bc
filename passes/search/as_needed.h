// What runs again as needed (`remat: auto`): what it may take, and which strategies are tried so.
#ifndef ORIEL_PASSES_SEARCH_AS_NEEDED_H_
#define ORIEL_PASSES_SEARCH_AS_NEEDED_H_

#include "passes/search/trials.h"

namespace oriel {

// About, in seconds: of a strategy that needs more than `memory` bytes with `none` and fits with
// `full`. `atLeast` is a bound of `none`, which may have been simulated with less overlap than its
// memory would allow. What takes least for its bytes runs again first, so that the time grows about
// as the square of the bytes that have to go, from that of `full` without what it runs again: it
// waits for the same collectives.
double secondsAsNeeded(const Evaluation& none, const Evaluation& full, double atLeast,
                       double memory);

// What fits only because it computes again may do with less of that, by as much as memory asks
// for. All blocks are compiled for it, many times, and for each grid: what promises most is
// tried, after all else, and no deep pipelines. The trials are sorted, and one fits.
void tryAsNeeded(Trials& trials);

}  // namespace oriel

#endif  // ORIEL_PASSES_SEARCH_AS_NEEDED_H_
