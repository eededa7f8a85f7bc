#include "passes/strategy/pipeline_schedule.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "passes/config/suggest.h"

namespace oriel {

namespace {

// The runs of one grid.
class GridRuns {
 public:
  GridRuns(const PipelineShape& shape, int64_t grid) : shape_(shape), grid_(grid) {}

  int64_t grid() const { return grid_; }
  void forward(int64_t stage, int64_t microbatch) {
    runs_.push_back({Phase::kForward, stage, microbatch});
  }
  // None of a stage without backward.
  void backward(int64_t stage, int64_t microbatch, Phase phase = Phase::kBackward) {
    if (shape_.hasBackward[stage]) runs_.push_back({phase, stage, microbatch});
  }

  // The pattern of 1F1B for `count` forwards and as many backwards: `warmUp` forwards, then one
  // forward and one backward in turn, then the backwards that are left.
  template <typename Forward, typename Backward>
  void oneForwardOneBackward(int64_t count, int64_t warmUp, Forward addForward,
                             Backward addBackward) {
    warmUp = std::min(warmUp, count);
    for (int64_t i = 0; i < warmUp; ++i) addForward(i);
    for (int64_t i = 0; i < count; ++i) {
      if (warmUp + i < count) addForward(warmUp + i);
      addBackward(i);
    }
  }

  std::vector<StageRun> take() { return std::move(runs_); }

 private:
  const PipelineShape& shape_;
  int64_t grid_;
  std::vector<StageRun> runs_;
};

// GPipe (Huang et al. 2019): all forwards, then all backwards. Holds every microbatch. The paper
// draws the backwards from the last microbatch to the first, which takes as long.
void addGPipe(const PipelineShape& shape, GridRuns& runs) {
  for (int64_t m = 0; m < shape.microbatches; ++m) runs.forward(runs.grid(), m);
  for (int64_t m = 0; m < shape.microbatches; ++m) runs.backward(runs.grid(), m);
}

// 1F1B (Narayanan et al. 2021, PipeDream-Flush): a stage starts its first backward when the stages
// behind it can give it one, and from there on holds no more: as many as there are stages from it
// to the last.
void addOneFOneB(const PipelineShape& shape, GridRuns& runs) {
  const int64_t stage = runs.grid();
  runs.oneForwardOneBackward(
      shape.microbatches, shape.grids - 1 - stage, [&](int64_t m) { runs.forward(stage, m); },
      [&](int64_t m) { runs.backward(stage, m); });
}

// Interleaved 1F1B (Narayanan et al. 2021, section 2.2): several stages ("chunks") on a grid. The
// microbatches go through the chunks in groups of as many as there are grids. The warm-up is that
// of Megatron-LM: the chunks but the last for a group, and twice the way to the last grid.
void addInterleaved(const PipelineShape& shape, GridRuns& runs) {
  const int64_t grids = shape.grids;
  const int64_t chunks = shape.stages() / grids;
  if (chunks == 1) return addOneFOneB(shape, runs);
  const int64_t count = chunks * shape.microbatches;
  auto chunkOf = [&](int64_t i) { return i % (chunks * grids) / grids; };
  auto microbatchOf = [&](int64_t i) { return i / (chunks * grids) * grids + i % grids; };
  runs.oneForwardOneBackward(
      count, 2 * (grids - 1 - runs.grid()) + (chunks - 1) * grids,
      [&](int64_t i) { runs.forward(chunkOf(i) * grids + runs.grid(), microbatchOf(i)); },
      [&](int64_t i) {
        runs.backward((chunks - 1 - chunkOf(i)) * grids + runs.grid(), microbatchOf(i));
      });
}

// ZB-H1 (Qi et al. 2024, "Zero Bubble Pipeline Parallelism", section 2.3 and figure 3): 1F1B whose
// backwards come in halves. The input halves are on the way to the first stage, and come where
// 1F1B has its backwards; the weight halves fill the time that their shortness leaves. The paper
// fixes their number behind: a stage's weight halves are as many microbatches behind its input
// halves as there are stages in front of it that wait for those. With that every stage holds as
// many microbatches as the first: what 1F1B holds at most.
void addZbH1(const PipelineShape& shape, GridRuns& runs) {
  const int64_t stage = runs.grid();
  const int64_t behind =
      std::count(shape.hasBackward.begin(), shape.hasBackward.begin() + stage, true);
  runs.oneForwardOneBackward(
      shape.microbatches, shape.grids - 1 - stage, [&](int64_t m) { runs.forward(stage, m); },
      [&](int64_t m) {
        runs.backward(stage, m, Phase::kBackwardInput);
        if (m >= behind) runs.backward(stage, m - behind, Phase::kBackwardWeight);
      });
  for (int64_t m = std::max<int64_t>(0, shape.microbatches - behind); m < shape.microbatches; ++m) {
    runs.backward(stage, m, Phase::kBackwardWeight);
  }
}

std::string counted(int64_t count, const char* what) {
  return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
}

absl::Status checkShape(ScheduleKind kind, const PipelineShape& shape) {
  const int64_t grids = shape.grids, stages = shape.stages();
  auto invalid = [&](auto... text) {
    return absl::InvalidArgumentError(
        absl::StrCat("the schedule '", scheduleName(kind), "' ", text...));
  };
  if (grids < 1 || shape.microbatches < 1) return invalid("needs a grid and a microbatch");
  if (kind != ScheduleKind::kInterleaved) {
    if (stages == grids) return absl::OkStatus();
    return invalid("runs one stage on each grid, not ", counted(stages, "stage"), " on ",
                   counted(grids, "grid"),
                   stages > grids ? "; 'interleaved' runs several on each" : "");
  }
  if (stages < grids || stages % grids != 0) {
    return invalid("runs as many stages on each grid: ", counted(stages, "stage"),
                   " can't be shared by ", counted(grids, "grid"), "; use ",
                   counted((stages / grids + 1) * grids, "stage"));
  }
  if (stages > grids && shape.microbatches % grids != 0) {
    const int64_t below = shape.microbatches / grids * grids;
    return invalid("needs a multiple of ", grids, " microbatches, the number of grids, not ",
                   shape.microbatches, "; use ", below > 0 ? absl::StrCat(below, " or ") : "",
                   below + grids);
  }
  return absl::OkStatus();
}

// Most of the intervals [first, last] that have a point in common.
int64_t deepest(const std::vector<std::pair<int64_t, int64_t>>& intervals) {
  std::map<int64_t, int64_t> changes;
  for (const auto& [first, last] : intervals) {
    ++changes[first];
    --changes[last + 1];
  }
  int64_t depth = 0, most = 0;
  for (const auto& [point, change] : changes) most = std::max(most, depth += change);
  return most;
}

}  // namespace

const std::vector<std::string>& scheduleNames() {
  static const auto* const names =
      new std::vector<std::string>{"gpipe", "1f1b", "interleaved", "zb-h1"};
  return *names;
}

const std::string& scheduleName(ScheduleKind kind) {
  return scheduleNames()[static_cast<size_t>(kind)];
}

absl::StatusOr<ScheduleKind> parseSchedule(const std::string& name) {
  const std::vector<std::string>& names = scheduleNames();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<ScheduleKind>(found - names.begin());
  return absl::InvalidArgumentError(
      absl::StrCat("there is no schedule '", name, "'", suggestion(name, names)));
}

const std::string& phaseName(Phase phase) {
  static const auto* const names =
      new std::vector<std::string>{"forward", "backward", "backward_input", "backward_weight"};
  return (*names)[static_cast<size_t>(phase)];
}

absl::StatusOr<PipelineSchedule> makeSchedule(ScheduleKind kind, const PipelineShape& shape) {
  if (absl::Status sound = checkShape(kind, shape); !sound.ok()) return sound;
  PipelineSchedule schedule;
  for (int64_t grid = 0; grid < shape.grids; ++grid) {
    GridRuns runs(shape, grid);
    switch (kind) {
      case ScheduleKind::kGPipe:
        addGPipe(shape, runs);
        break;
      case ScheduleKind::kOneFOneB:
        addOneFOneB(shape, runs);
        break;
      case ScheduleKind::kInterleaved:
        addInterleaved(shape, runs);
        break;
      case ScheduleKind::kZbH1:
        addZbH1(shape, runs);
        break;
    }
    schedule.push_back(runs.take());
  }
  return schedule;
}

int64_t peakInFlight(const std::vector<StageRun>& runs) {
  std::map<std::pair<int64_t, int64_t>, std::pair<int64_t, int64_t>> held;
  for (size_t i = 0; i < runs.size(); ++i) {
    const int64_t at = static_cast<int64_t>(i);
    held.try_emplace({runs[i].stage, runs[i].microbatch}, at, at).first->second.second = at;
  }
  std::vector<std::pair<int64_t, int64_t>> intervals;
  for (const auto& [of, interval] : held) intervals.push_back(interval);
  return deepest(intervals);
}

int64_t peakInFlight(const std::vector<StageRun>& runs, int64_t stage) {
  std::vector<StageRun> own;
  std::copy_if(runs.begin(), runs.end(), std::back_inserter(own),
               [&](const StageRun& run) { return run.stage == stage; });
  return peakInFlight(own);
}

}  // namespace oriel
