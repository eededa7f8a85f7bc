// How long a collective takes, beside predictedSeconds() of passes/stage/op_time.h: only times
// relative to each other count.
#ifndef ORIEL_PASSES_OVERLAP_COLLECTIVE_TIME_H_
#define ORIEL_PASSES_OVERLAP_COLLECTIVE_TIME_H_

#include <cstdint>

#include "ir/oriel/oriel.h"

namespace oriel {

// Bytes that each rank of a group of `ranks` sends and receives: of all operands of the collective,
// by an algorithm that sends no more than it must (a ring: Thakur, Rabenseifner and Gropp 2005).
double sentBytes(ir::CollectiveOpInterface collective, int64_t ranks);

// A latency, and the time for these bytes. Of several collectives that travel as one, their sum.
double predictedCollectiveSeconds(double sentBytes);

}  // namespace oriel

#endif  // ORIEL_PASSES_OVERLAP_COLLECTIVE_TIME_H_
