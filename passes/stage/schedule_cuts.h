// Where to cut a row of parts into stages, by what a schedule makes of them.
#ifndef ORIEL_PASSES_STAGE_SCHEDULE_CUTS_H_
#define ORIEL_PASSES_STAGE_SCHEDULE_CUTS_H_

#include <cstdint>
#include <vector>

#include "passes/strategy/pipeline_schedule.h"
#include "passes/strategy/timeline.h"

namespace oriel {

// Stages of a pipeline; stage s is on grid s mod `grids`, which divides `stages`.
struct StagesToCut {
  ScheduleKind schedule = ScheduleKind::kOneFOneB;
  int64_t stages = 1, grids = 1;
  int64_t microbatches = 1;
};

// Cuts a row of parts, with the times of a microbatch in any unit, into stages, none empty, and
// returns the first part of each. There are at least as many parts as stages. What changes of
// balanced cuts (balance.h, cut_moves.h) find for the time of a step, by replay without transfers;
// of very many microbatches, the last replayed ones stand for the rest. Balanced cuts where that
// saves less than 0.5 %, and where there is no such schedule.
std::vector<int64_t> cutsForSchedule(const std::vector<StageTimes>& parts, const StagesToCut& row);

}  // namespace oriel

#endif  // ORIEL_PASSES_STAGE_SCHEDULE_CUTS_H_
