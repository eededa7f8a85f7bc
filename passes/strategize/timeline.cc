#include "passes/strategize/timeline.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace oriel {

namespace {

class Replay {
 public:
  Replay(const PipelineSchedule& schedule, const PipelineTimes& times)
      : schedule_(schedule), times_(times), next_(schedule.size()) {
    timeline_.grids.resize(schedule.size());
    timeline_.busy.resize(schedule.size());
    for (size_t grid = 0; grid < schedule.size(); ++grid) {
      for (const StageRun& run : schedule[grid]) {
        gridOf_[run.stage] = grid;
        // The phase whose result goes to earlier stages.
        if (run.phase == Phase::kBackward || run.phase == Phase::kBackwardInput) {
          backward_[run.stage] = run.phase;
        }
      }
    }
  }

  absl::StatusOr<Timeline> run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t grid = 0; grid < schedule_.size(); ++grid) {
        while (next_[grid] < schedule_[grid].size() && runNext(grid)) moved = true;
      }
    }
    for (size_t grid = 0; grid < schedule_.size(); ++grid) {
      if (next_[grid] == schedule_[grid].size()) continue;
      const StageRun& run = schedule_[grid][next_[grid]];
      return absl::FailedPreconditionError(absl::StrCat(
          "the schedule never ends: grid ", grid, " waits for the inputs of ", phaseName(run.phase),
          " of stage ", run.stage, ", microbatch ", run.microbatch));
    }
    return std::move(timeline_);
  }

 private:
  // False if its inputs are not there yet.
  bool runNext(size_t grid) {
    const StageRun& run = schedule_[grid][next_[grid]];
    std::vector<TimedRun>& done = timeline_.grids[grid];
    double start = done.empty() ? 0 : done.back().end;
    for (const RunKey& input : inputsOf(run)) {
      const auto end = ends_.find(input);
      if (end == ends_.end()) return false;
      const bool here = gridOf_.at(std::get<1>(input)) == grid;
      start = std::max(start, end->second + (here ? 0 : times_.transfer));
    }
    const auto own = times_.ofRun.find({run.phase, run.stage, run.microbatch});
    const double time =
        own != times_.ofRun.end() ? own->second : times_.stages[run.stage].of(run.phase);
    done.push_back({run, start, start + time});
    ends_[{run.phase, run.stage, run.microbatch}] = start + time;
    timeline_.busy[grid] += time;
    timeline_.makespan = std::max(timeline_.makespan, start + time);
    ++next_[grid];
    return true;
  }

  std::vector<RunKey> inputsOf(const StageRun& run) const {
    if (run.phase == Phase::kForward) {
      if (run.stage == 0) return {};
      return {{Phase::kForward, run.stage - 1, run.microbatch}};
    }
    if (run.phase == Phase::kBackwardWeight) {
      return {{Phase::kBackwardInput, run.stage, run.microbatch}};
    }
    std::vector<RunKey> inputs = {{Phase::kForward, run.stage, run.microbatch}};
    const auto later = backward_.upper_bound(run.stage);
    if (later != backward_.end()) inputs.push_back({later->second, later->first, run.microbatch});
    return inputs;
  }

  const PipelineSchedule& schedule_;
  const PipelineTimes& times_;
  std::map<int64_t, size_t> gridOf_;
  std::map<int64_t, Phase> backward_;  // of the stages that have one
  std::vector<size_t> next_;           // by grid
  std::map<RunKey, double> ends_;
  Timeline timeline_;
};

}  // namespace

double StageTimes::of(Phase phase) const {
  switch (phase) {
    case Phase::kForward:
      return forward;
    case Phase::kBackward:
      return backward;
    case Phase::kBackwardInput:
      return backwardInput;
    case Phase::kBackwardWeight:
      return backwardWeight;
  }
  return 0;
}

double Timeline::bubble() const {
  if (makespan == 0) return 0;
  const double ideal = *std::max_element(busy.begin(), busy.end());
  return std::max(0.0, 1 - ideal / makespan);  // not below by rounding
}

absl::StatusOr<Timeline> replaySchedule(const PipelineSchedule& schedule,
                                        const PipelineTimes& times) {
  for (const std::vector<StageRun>& runs : schedule) {
    for (const StageRun& run : runs) {
      if (run.stage >= 0 && run.stage < static_cast<int64_t>(times.stages.size())) continue;
      return absl::InvalidArgumentError(absl::StrCat("stage ", run.stage, " has no times"));
    }
  }
  return Replay(schedule, times).run();
}

}  // namespace oriel
