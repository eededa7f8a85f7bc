// The programs of a pipeline from those of some of its grids, where grids have equal stages, and of
// few microbatches.
#ifndef ORIEL_PASSES_SIMULATE_REPEAT_GRIDS_H_
#define ORIEL_PASSES_SIMULATE_REPEAT_GRIDS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "passes/simulate/program_profile.h"
#include "passes/strategy/pipeline_schedule.h"

namespace oriel {

// A pipeline of which the first grid of each class was compiled: stage s of it on grid s mod
// kept.size().
struct RepeatedGrids {
  std::vector<int64_t> kept;        // the first grid of each class, ascending
  std::vector<int64_t> keptOf;      // by grid: the place of its class in `kept`
  std::vector<int64_t> firstRanks;  // by grid
  ScheduleKind schedule = ScheduleKind::kOneFOneB;
  int64_t interleave = 1;        // stages on a grid
  int64_t microbatches = 1;      // of the pipeline
  int64_t keptMicrobatches = 1;  // with which it was compiled

  int64_t grids() const { return static_cast<int64_t>(keptOf.size()); }
};

// Where no grid stands for another: the same programs with all microbatches of the pipeline. Memory
// as below. None where a segment of the schedule is missing.
std::optional<std::vector<ProgramCost>> repeatMicrobatches(const std::vector<ProgramCost>& compiled,
                                                           const RepeatedGrids& repeated);

// Of a grid, with the segments of the program that stands for it. None if there is no such
// schedule.
std::optional<std::vector<ScheduledRun>> scheduleOnKept(const std::vector<ProgramCost>& compiled,
                                                        const RepeatedGrids& repeated,
                                                        int64_t grid);

// By grid. Its memory is what `memoryOn` says, else that of the program that stands for it. Of what
// programs tell each other in `update`, only what compiled ones do is there. None where programs
// send to others than their neighbours, so that some of them can't stand for all.
std::optional<std::vector<ProgramCost>> repeatGrids(const std::vector<ProgramCost>& compiled,
                                                    const RepeatedGrids& repeated);

}  // namespace oriel

#endif  // ORIEL_PASSES_SIMULATE_REPEAT_GRIDS_H_
