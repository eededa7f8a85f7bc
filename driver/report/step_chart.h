// The timeline of a step in a report: a row for each program, a bar for each run of a segment.
#ifndef ORIEL_DRIVER_REPORT_STEP_CHART_H_
#define ORIEL_DRIVER_REPORT_STEP_CHART_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "driver/simulation.h"

namespace oriel::driver {

// What a segment does, by its name; in the order in which bars of several are stacked.
enum class StepPhase { kForward, kBackward, kBackwardWeight, kUpdate, kOther };
inline constexpr size_t kStepPhases = 5;

StepPhase phaseOfSegment(const std::string& segment);

// One run, or neighbours that are too short to be seen one by one.
struct StepBar {
  double start = 0, end = 0;                     // seconds
  std::array<double, kStepPhases> seconds = {};  // of its runs, by phase
  std::optional<ScheduledRun> run;               // if it is one
};

// In their order. A run ends where it waits for other programs, and goes on as a bar of its own.
// What is shorter than `shortest` seconds is drawn with the short ones behind it that begin less
// than `shortest` after its start, and idle time between them counts as none of theirs.
std::vector<StepBar> barsOf(const std::vector<TimedSegment>& runs, double shortest);

// With what it leaves out said below. `step` of `names`' programs.
std::string stepChart(const StepTimeline& step, const std::vector<std::string>& names);

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_REPORT_STEP_CHART_H_
