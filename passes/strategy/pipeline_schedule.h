// Pipeline schedules: the order in which each grid runs the stages of a step's microbatches.
//
//   makeSchedule(ScheduleKind::kOneFOneB, {2, {true, true}, 3}):
//     grid 0: F0.0 F0.1 B0.0 F0.2 B0.1 B0.2   (phase, stage, microbatch)
//     grid 1: F1.0 B1.0 F1.1 B1.1 F1.2 B1.2
//
// In all of them a stage runs the backwards of its microbatches in ascending order, so that sums
// over microbatches are made in the same order whatever the schedule.
#ifndef ORIEL_PASSES_STRATEGY_PIPELINE_SCHEDULE_H_
#define ORIEL_PASSES_STRATEGY_PIPELINE_SCHEDULE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace oriel {

enum class ScheduleKind { kGPipe, kOneFOneB, kInterleaved, kZbH1 };

// "gpipe", "1f1b", "interleaved", "zb-h1", in the order of the enum.
const std::vector<std::string>& scheduleNames();
const std::string& scheduleName(ScheduleKind kind);
// InvalidArgument for another name, with the nearest one.
absl::StatusOr<ScheduleKind> parseSchedule(const std::string& name);

enum class Phase { kForward, kBackward, kBackwardInput, kBackwardWeight };

// "forward", "backward", "backward_input", "backward_weight": as the segments of a plan.
const std::string& phaseName(Phase phase);

// One run of a stage's segment.
struct StageRun {
  Phase phase = Phase::kForward;
  int64_t stage = 0;
  int64_t microbatch = 0;

  friend bool operator==(const StageRun& a, const StageRun& b) {
    return a.phase == b.phase && a.stage == b.stage && a.microbatch == b.microbatch;
  }
};

struct PipelineShape {
  int64_t grids = 1;
  // By stage; stage s is on grid s mod `grids`. A stage that trains nothing and is in front of all
  // that trains has none: it runs its forwards, and nothing waits for it.
  std::vector<bool> hasBackward;
  int64_t microbatches = 1;

  int64_t stages() const { return static_cast<int64_t>(hasBackward.size()); }
  int64_t gridOf(int64_t stage) const { return stage % grids; }
};

// The runs of each grid, in their order.
using PipelineSchedule = std::vector<std::vector<StageRun>>;

// Any number of microbatches will do, but:
//   interleaved needs a multiple of the grids, and as many stages on each grid;
//   the others run one stage on each grid.
// InvalidArgument says what the schedule needs.
absl::StatusOr<PipelineSchedule> makeSchedule(ScheduleKind kind, const PipelineShape& shape);

// Most microbatches that a grid (or one of its stages) holds at a time. It holds a microbatch from
// its first run of a stage to its last, and twice if two of its stages hold it.
int64_t peakInFlight(const std::vector<StageRun>& runs);
int64_t peakInFlight(const std::vector<StageRun>& runs, int64_t stage);

}  // namespace oriel

#endif  // ORIEL_PASSES_STRATEGY_PIPELINE_SCHEDULE_H_
