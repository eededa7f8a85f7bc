// How long a collective takes, beside predictedSeconds() of op_time.h: only times relative to each
// other count.
#ifndef ORIEL_PASSES_STAGE_COLLECTIVE_TIME_H_
#define ORIEL_PASSES_STAGE_COLLECTIVE_TIME_H_

#include "ir/oriel/oriel.h"
#include "passes/strategize/grid.h"

namespace oriel {

// Bytes that each rank of a group of the grid sends and receives: of all operands of the
// collective, by an algorithm that sends no more than it must (a ring: Thakur, Rabenseifner and
// Gropp 2005).
double sentBytes(ir::CollectiveOpInterface collective, const Grid& grid);

// A latency, and the time for these bytes. Of several collectives that travel as one, their sum.
double predictedCollectiveSeconds(double sentBytes);

}  // namespace oriel

#endif  // ORIEL_PASSES_STAGE_COLLECTIVE_TIME_H_
