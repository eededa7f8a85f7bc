// What a step takes with given cuts, for tests.
#ifndef ORIEL_PASSES_STAGE_SCHEDULE_CUTS_TESTING_H_
#define ORIEL_PASSES_STAGE_SCHEDULE_CUTS_TESTING_H_

#include <cstdint>
#include <vector>

#include "passes/stage/schedule_cuts.h"

namespace oriel {

// Of a step, by a replay of all its microbatches.
inline double makespanOf(const std::vector<StageTimes>& parts, const std::vector<int64_t>& cuts,
                         const StagesToCut& row) {
  std::vector<StageTimes> stages(row.stages);
  PipelineShape shape{row.grids, std::vector<bool>(row.stages, true), row.microbatches};
  for (int64_t stage = 0; stage < row.stages; ++stage) {
    const auto end = stage + 1 < row.stages ? cuts[stage + 1] : static_cast<int64_t>(parts.size());
    for (int64_t i = cuts[stage]; i < end; ++i) stages[stage] += parts[i];
    const bool isFirst = stage == 0 || !shape.hasBackward[stage - 1];
    shape.hasBackward[stage] = !isFirst || stages[stage].backward > 0;
  }
  const PipelineSchedule schedule = makeSchedule(row.schedule, shape).value();
  return replaySchedule(schedule, {stages}).value().makespan;
}

}  // namespace oriel

#endif  // ORIEL_PASSES_STAGE_SCHEDULE_CUTS_TESTING_H_
