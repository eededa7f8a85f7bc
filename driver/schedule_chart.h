// The schedule of a plan's step as a chart, with the times that the compiler predicts.
#ifndef ORIEL_DRIVER_SCHEDULE_CHART_H_
#define ORIEL_DRIVER_SCHEDULE_CHART_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "passes/strategy/timeline.h"
#include "runtime/plan/plan.pb.h"

namespace oriel::driver {

// When each run of a step's microbatches happens, by program.
struct PlanTimeline {
  Timeline timeline;
  // Of Segment.predicted_ms. Else no segment has one, and the unit of time is a forward or half a
  // backward.
  bool predicted = false;
  double update = 0;  // the longest
};

// Of a verified plan. FailedPrecondition if its programs wait for each other for ever.
absl::StatusOr<PlanTimeline> timelineOf(const plan::Plan& plan);

// A row per program, time to the right, at most `columns` wide; the predicted times, the bubble and
// the microbatches in flight below. `color`: with the escape codes of terminals.
std::string scheduleText(const plan::Plan& plan, const PlanTimeline& timeline, int64_t columns,
                         bool color);
// The same for scripts.
std::string scheduleJson(const plan::Plan& plan, const PlanTimeline& timeline);

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_SCHEDULE_CHART_H_
