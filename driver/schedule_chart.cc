#include "driver/schedule_chart.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "driver/plan_text.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_types.h"

namespace oriel::driver {

namespace {

// What a segment runs; none of update and eval.
std::optional<StageRun> runOf(const std::string& name, int64_t microbatch) {
  const std::string segment = runtime::PlainSegment(name);
  const std::string_view kind = runtime::SegmentKind(segment);
  StageRun run;
  run.microbatch = microbatch;
  if (kind.size() < segment.size() &&
      !absl::SimpleAtoi(segment.substr(kind.size() + 1), &run.stage)) {
    return std::nullopt;
  }
  for (Phase phase :
       {Phase::kForward, Phase::kBackward, Phase::kBackwardInput, Phase::kBackwardWeight}) {
    run.phase = phase;
    if (phaseName(phase) == kind) return run;
  }
  return std::nullopt;
}

double& timeOf(Phase phase, StageTimes& times) {
  switch (phase) {
    case Phase::kForward:
      return times.forward;
    case Phase::kBackward:
      return times.backward;
    case Phase::kBackwardInput:
      return times.backwardInput;
    case Phase::kBackwardWeight:
      break;
  }
  return times.backwardWeight;
}

std::string ranksText(const plan::Program& program) {
  if (program.rank_count() == 1) return absl::StrCat("rank ", program.first_rank());
  return absl::StrCat("ranks ", program.first_rank(), "-",
                      program.first_rank() + program.rank_count() - 1);
}

// The stages that a program runs, in ascending order.
std::vector<int64_t> stagesOf(const std::vector<TimedRun>& runs) {
  std::set<int64_t> stages;
  for (const TimedRun& each : runs) stages.insert(each.run.stage);
  return {stages.begin(), stages.end()};
}

std::vector<StageRun> untimed(const std::vector<TimedRun>& runs) {
  std::vector<StageRun> result;
  for (const TimedRun& each : runs) result.push_back(each.run);
  return result;
}

// "a", "b", ..
std::string stageLetter(size_t place) {
  return std::string(1, static_cast<char>('a' + place % 26));
}

// Columns per ms. All runs fit; where there is room, the shortest run gets a whole number of
// columns, so that equal runs look equal, but no more than it takes to read.
double scaleOf(const Timeline& timeline, int64_t columns) {
  constexpr double kReadable = 3, kEnough = 6;
  double shortest = timeline.makespan;
  for (const std::vector<TimedRun>& runs : timeline.grids) {
    for (const TimedRun& each : runs) {
      if (each.end > each.start) shortest = std::min(shortest, each.end - each.start);
    }
  }
  if (shortest <= 0) return 0;
  const double scale =
      std::min(static_cast<double>(columns) / timeline.makespan, kEnough / shortest);
  return scale * shortest < kReadable ? scale : std::floor(scale * shortest) / shortest;
}

// A run in the chart: "F12b---", as much of it as there is room for.
class Cell {
 public:
  // `stage`: its letter; empty if the program has one stage alone.
  Cell(const StageRun& run, const std::string& stage, size_t shade)
      : phase_(run.phase == Phase::kForward          ? 0
               : run.phase == Phase::kBackwardWeight ? 2
                                                     : 1),
        number_(absl::StrCat(run.microbatch)),
        stage_(stage),
        shade_(shade) {}

  std::string text(size_t columns, bool color) const {
    std::string text = absl::StrCat(std::string(1, "FBW"[phase_]), number_, stage_);
    if (text.size() > columns) text.resize(text.size() - stage_.size());
    if (text.size() > columns) text.resize(std::min<size_t>(columns, 1));
    text.resize(columns, color ? ' ' : "-=~"[phase_]);
    if (!color) return text;
    // Black on blue, green, yellow; two shades of each.
    constexpr int kBackground[3][2] = {{117, 75}, {120, 71}, {229, 221}};
    return absl::StrFormat("\x1b[38;5;16;48;5;%dm%s\x1b[0m", kBackground[phase_][shade_ % 2], text);
  }

 private:
  int phase_;
  std::string number_, stage_;
  size_t shade_;
};

std::string rowText(const std::vector<TimedRun>& runs, double scale, int64_t columns, bool color) {
  const std::vector<int64_t> stages = stagesOf(runs);
  std::string row;
  int64_t at = 0;
  auto waitUntil = [&](int64_t column) {
    row.append(column - at, color ? ' ' : '.');
    at = column;
  };
  for (const TimedRun& each : runs) {
    const int64_t start = std::llround(each.start * scale), end = std::llround(each.end * scale);
    if (end <= at) continue;
    waitUntil(std::max(at, start));
    const size_t place = std::find(stages.begin(), stages.end(), each.run.stage) - stages.begin();
    row += Cell(each.run, stages.size() > 1 ? stageLetter(place) : "", place).text(end - at, color);
    at = end;
  }
  waitUntil(std::max(at, columns));
  return row;
}

std::string counted(int64_t count, const std::string& what) {
  return absl::StrCat(count, " ", what, count == 1 ? "" : "es");
}

// "a vision, b llm.4-7"; the labels alone of one stage.
std::string stagesText(const plan::Program& program, const std::vector<TimedRun>& runs) {
  const std::vector<int64_t> stages = stagesOf(runs);
  std::vector<std::string> texts;
  for (size_t i = 0; i < stages.size(); ++i) {
    const bool labelled = static_cast<int>(i) < program.stages_size();
    texts.push_back(absl::StrCat(
        stages.size() > 1 ? stageLetter(i) + " " : "",
        labelled ? program.stages(static_cast<int>(i)) : absl::StrCat("stage ", stages[i])));
  }
  return absl::StrJoin(texts, ", ");
}

}  // namespace

absl::StatusOr<PlanTimeline> timelineOf(const plan::Plan& plan) {
  PlanTimeline result;
  PipelineSchedule schedule;
  PipelineTimes times;
  for (const plan::Program& program : plan.programs()) {
    std::vector<StageRun>& runs = schedule.emplace_back();
    std::map<std::string, double> predicted;  // ms
    for (const plan::Segment& segment : program.segments()) {
      predicted[segment.name()] = segment.predicted_ms();
    }
    for (const plan::ScheduleEntry& entry : program.schedule()) {
      const auto run = runOf(entry.segment(), entry.microbatch());
      if (!run) continue;
      runs.push_back(*run);
      // It may reduce the gradients beside what the others do.
      const double time = predicted[entry.segment()];
      if (runtime::IsLast(entry.segment()) && time > 0) {
        times.ofRun[{run->phase, run->stage, run->microbatch}] = time;
      }
    }
    for (const plan::Segment& segment : program.segments()) {
      result.predicted |= segment.predicted_ms() > 0;
      if (segment.name() == "update") {
        result.update = std::max(result.update, segment.predicted_ms());
      }
      const auto run = runOf(segment.name(), 0);
      if (!run || runtime::IsLast(segment.name())) continue;
      if (run->stage >= static_cast<int64_t>(times.stages.size())) {
        times.stages.resize(run->stage + 1);
      }
      timeOf(run->phase, times.stages[run->stage]) = segment.predicted_ms();
    }
  }
  if (!result.predicted)
    std::fill(times.stages.begin(), times.stages.end(), StageTimes{1, 2, 1, 1});
  ORIEL_ASSIGN_OR_RETURN(result.timeline, replaySchedule(schedule, times));
  return result;
}

std::string scheduleText(const plan::Plan& plan, const PlanTimeline& timeline, int64_t columns,
                         bool color) {
  const Timeline& times = timeline.timeline;
  size_t labelWidth = 0;
  for (const plan::Program& program : plan.programs()) {
    labelWidth = std::max(labelWidth, ranksText(program).size());
  }
  auto line = [&](const std::string& label, const std::string& what) {
    return absl::StrFormat("  %-*s  %s\n", static_cast<int>(labelWidth), label, what);
  };
  const int64_t room = std::max<int64_t>(10, columns - static_cast<int64_t>(labelWidth) - 4);
  const double scale = scaleOf(times, room);
  const int64_t width = std::llround(times.makespan * scale);

  std::string chart, stages;
  bool halves = false, narrow = false;
  for (size_t i = 0; i < times.grids.size(); ++i) {
    const plan::Program& program = plan.programs(static_cast<int>(i));
    const std::vector<TimedRun>& runs = times.grids[i];
    chart += line(ranksText(program), rowText(runs, scale, width, color));
    const double busy = times.makespan > 0 ? times.busy[i] / times.makespan : 0;
    stages += line(ranksText(program),
                   absl::StrFormat("%s: works %.1f %% of the time, holds %s at most",
                                   stagesText(program, runs), 100 * busy,
                                   counted(peakInFlight(untimed(runs)), "microbatch")));
    for (const TimedRun& each : runs) {
      halves |= each.run.phase == Phase::kBackwardWeight;
      narrow |= each.end > each.start && (each.end - each.start) * scale < 1;
    }
  }
  chart += line("", absl::StrCat("F forward, B backward",
                                 halves ? " (its input half), W its weight half" : "",
                                 ", of the microbatch of that number", color ? "" : "; . waits",
                                 narrow ? "; some runs are narrower than a column" : ""));
  std::string text =
      absl::StrCat("schedule    ", counted(plan.training().microbatches(), "microbatch"),
                   ", time to the right\n", chart, "stages\n", stages);
  if (timeline.predicted) {
    absl::StrAppend(&text, "step        ", timeText(times.makespan + timeline.update),
                    " predicted, without transfers: ", timeText(times.makespan),
                    " for the microbatches, ", timeText(timeline.update), " for the update\n");
  } else {
    text += "step        no times are predicted: a forward counts 1, a backward 2, half of one 1\n";
  }
  absl::StrAppendFormat(
      &text,
      "bubble      %.1f %% of the microbatches' time, in which even the busiest ranks wait\n",
      100 * times.bubble());
  return text;
}

std::string scheduleJson(const plan::Plan& plan, const PlanTimeline& timeline) {
  using Json = nlohmann::ordered_json;
  const Timeline& times = timeline.timeline;
  Json programs = Json::array();
  for (size_t i = 0; i < times.grids.size(); ++i) {
    const plan::Program& program = plan.programs(static_cast<int>(i));
    Json runs = Json::array();
    for (const TimedRun& each : times.grids[i]) {
      runs.push_back({{"phase", phaseName(each.run.phase)},
                      {"stage", each.run.stage},
                      {"microbatch", each.run.microbatch},
                      {"start_ms", each.start},
                      {"end_ms", each.end}});
    }
    programs.push_back({{"first_rank", program.first_rank()},
                        {"rank_count", program.rank_count()},
                        {"stages", stagesOf(times.grids[i])},
                        {"busy_ms", times.busy[i]},
                        {"peak_in_flight", peakInFlight(untimed(times.grids[i]))},
                        {"runs", std::move(runs)}});
  }
  const Json json = {
      {"predicted", timeline.predicted},   {"step_ms", times.makespan + timeline.update},
      {"microbatches_ms", times.makespan}, {"update_ms", timeline.update},
      {"bubble", times.bubble()},          {"programs", std::move(programs)}};
  return json.dump(2) + "\n";
}

}  // namespace oriel::driver
