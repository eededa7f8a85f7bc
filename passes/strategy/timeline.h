// When the runs of a pipeline schedule happen, by replay with the time of each.
#ifndef ORIEL_PASSES_STRATEGY_TIMELINE_H_
#define ORIEL_PASSES_STRATEGY_TIMELINE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "passes/strategy/pipeline_schedule.h"

namespace oriel {

// One run of each phase of a stage, in ms.
struct StageTimes {
  double forward = 0;
  double backward = 0;
  double backwardInput = 0;
  double backwardWeight = 0;

  double of(Phase phase) const;
  StageTimes& operator+=(const StageTimes& other);
};

using RunKey = std::tuple<Phase, int64_t, int64_t>;  // of a stage and a microbatch

struct PipelineTimes {
  std::vector<StageTimes> stages;
  // ms from the end of a run until another grid has what it made. Grids don't wait for what they
  // send.
  double transfer = 0;
  // Single runs that take another time than those of their stage.
  std::map<RunKey, double> ofRun = {};
};

struct TimedRun {
  StageRun run;
  double start = 0;  // ms from the start of the step
  double end = 0;
};

struct Timeline {
  std::vector<std::vector<TimedRun>> grids;  // as in the schedule
  std::vector<double> busy;                  // ms of each grid's runs
  double makespan = 0;                       // ms until the last run ends

  // The part of a step for which even the busiest grid waits: 1 - ideal / makespan, where ideal is
  // the largest of `busy`. With P grids, m microbatches and equal stages that is
  //   (P-1) / (m + P-1)    for GPipe and 1F1B (Narayanan et al. 2021, section 2.2, as a part of the
  //                        step: their (P-1)/m is of the ideal time),
  //   (P-1) / (v m + P-1)  for v stages on each grid, interleaved (likewise),
  //   (P-1) (F+B-W) / (m (F+B+W) + (P-1) (F+B-W))  for ZB-H1 (Qi et al. 2024, section 2.3).
  double bubble() const;
};

// A run, and what it waits for.
struct OrderedRun {
  StageRun run;
  size_t grid = 0;
  int before = -1;                    // place of the run before on this grid; -1: none
  std::array<int, 2> inputs{-1, -1};  // places of those that it waits for; -1: none
};

// A schedule to be replayed, each time with other times of its stages.
class ScheduleReplay {
 public:
  // FailedPrecondition if grids wait for each other for ever.
  static absl::StatusOr<ScheduleReplay> create(const PipelineSchedule& schedule);

  // All stages of the schedule have times.
  Timeline timeline(const PipelineTimes& times) const;
  // Of that timeline alone, where transfers take no time.
  double makespan(const std::vector<StageTimes>& stages) const;
  int64_t runs() const { return static_cast<int64_t>(runs_.size()); }

 private:
  ScheduleReplay(std::vector<OrderedRun> runs, size_t grids)
      : runs_(std::move(runs)), grids_(grids) {}

  // When the run starts, if earlier ones end then.
  double start(const OrderedRun& run, const std::vector<double>& ends, double transfer) const;

  std::vector<OrderedRun> runs_;  // each behind what it waits for
  size_t grids_;
};

// Each grid runs its list in order. A run starts when the run before has ended and its inputs are
// there: of a forward, the forward of the stage before; of a backward (or input half), the
// stage's own forward and the backward of the next stage that has one; of a weight half, the
// stage's own input half. FailedPrecondition if grids wait for each other for ever.
absl::StatusOr<Timeline> replaySchedule(const PipelineSchedule& schedule,
                                        const PipelineTimes& times);

}  // namespace oriel

#endif  // ORIEL_PASSES_STRATEGY_TIMELINE_H_
