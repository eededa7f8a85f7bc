#include "passes/strategy/timeline.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace oriel {

namespace {

// The runs of a schedule, put in an order in which each comes behind what it waits for.
class RunOrder {
 public:
  explicit RunOrder(const PipelineSchedule& schedule)
      : schedule_(schedule), next_(schedule.size()), last_(schedule.size(), -1) {
    for (const std::vector<StageRun>& runs : schedule) {
      for (const StageRun& run : runs) {
        // The phase whose result goes to earlier stages.
        if (run.phase == Phase::kBackward || run.phase == Phase::kBackwardInput) {
          backward_[run.stage] = run.phase;
        }
      }
    }
  }

  absl::StatusOr<std::vector<OrderedRun>> order() {
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t grid = 0; grid < schedule_.size(); ++grid) {
        while (next_[grid] < schedule_[grid].size() && takeNext(grid)) moved = true;
      }
    }
    for (size_t grid = 0; grid < schedule_.size(); ++grid) {
      if (next_[grid] == schedule_[grid].size()) continue;
      const StageRun& run = schedule_[grid][next_[grid]];
      return absl::FailedPreconditionError(absl::StrCat(
          "the schedule never ends: grid ", grid, " waits for the inputs of ", phaseName(run.phase),
          " of stage ", run.stage, ", microbatch ", run.microbatch));
    }
    return std::move(runs_);
  }

 private:
  // False if its inputs are not there yet.
  bool takeNext(size_t grid) {
    const StageRun& run = schedule_[grid][next_[grid]];
    OrderedRun next{run, grid, last_[grid]};
    size_t count = 0;
    for (const RunKey& input : inputsOf(run)) {
      const auto known = places_.find(input);
      if (known == places_.end()) return false;
      next.inputs[count++] = known->second;
    }
    last_[grid] = static_cast<int>(runs_.size());
    places_[{run.phase, run.stage, run.microbatch}] = last_[grid];
    runs_.push_back(next);
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
  std::map<int64_t, Phase> backward_;  // of the stages that have one
  std::vector<size_t> next_;           // by grid
  std::vector<int> last_;              // by grid, that was taken
  std::map<RunKey, int> places_;
  std::vector<OrderedRun> runs_;
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

StageTimes& StageTimes::operator+=(const StageTimes& other) {
  forward += other.forward;
  backward += other.backward;
  backwardInput += other.backwardInput;
  backwardWeight += other.backwardWeight;
  return *this;
}

double Timeline::bubble() const {
  if (makespan == 0) return 0;
  const double ideal = *std::max_element(busy.begin(), busy.end());
  return std::max(0.0, 1 - ideal / makespan);  // not below by rounding
}

absl::StatusOr<ScheduleReplay> ScheduleReplay::create(const PipelineSchedule& schedule) {
  absl::StatusOr<std::vector<OrderedRun>> runs = RunOrder(schedule).order();
  if (!runs.ok()) return runs.status();
  return ScheduleReplay(*std::move(runs), schedule.size());
}

double ScheduleReplay::start(const OrderedRun& run, const std::vector<double>& ends,
                             double transfer) const {
  double start = run.before < 0 ? 0 : ends[run.before];
  for (int input : run.inputs) {
    if (input < 0) continue;
    start = std::max(start, ends[input] + (runs_[input].grid == run.grid ? 0 : transfer));
  }
  return start;
}

double ScheduleReplay::makespan(const std::vector<StageTimes>& stages) const {
  std::vector<double> ends(runs_.size());
  for (size_t i = 0; i < runs_.size(); ++i) {
    const OrderedRun& run = runs_[i];
    ends[i] = start(run, ends, /*transfer=*/0) + stages[run.run.stage].of(run.run.phase);
  }
  return ends.empty() ? 0 : *std::max_element(ends.begin(), ends.end());
}

Timeline ScheduleReplay::timeline(const PipelineTimes& times) const {
  Timeline timeline;
  timeline.grids.resize(grids_);
  timeline.busy.resize(grids_);
  std::vector<double> ends(runs_.size());
  for (size_t i = 0; i < runs_.size(); ++i) {
    const StageRun& run = runs_[i].run;
    const size_t grid = runs_[i].grid;
    const auto own = times.ofRun.find({run.phase, run.stage, run.microbatch});
    const double time =
        own != times.ofRun.end() ? own->second : times.stages[run.stage].of(run.phase);
    const double begin = start(runs_[i], ends, times.transfer);
    ends[i] = begin + time;
    timeline.grids[grid].push_back({run, begin, ends[i]});
    timeline.busy[grid] += time;
    timeline.makespan = std::max(timeline.makespan, ends[i]);
  }
  return timeline;
}

absl::StatusOr<Timeline> replaySchedule(const PipelineSchedule& schedule,
                                        const PipelineTimes& times) {
  for (const std::vector<StageRun>& runs : schedule) {
    for (const StageRun& run : runs) {
      if (run.stage >= 0 && run.stage < static_cast<int64_t>(times.stages.size())) continue;
      return absl::InvalidArgumentError(absl::StrCat("stage ", run.stage, " has no times"));
    }
  }
  absl::StatusOr<ScheduleReplay> replay = ScheduleReplay::create(schedule);
  if (!replay.ok()) return replay.status();
  return replay->timeline(times);
}

}  // namespace oriel
