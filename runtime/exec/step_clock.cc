#include "runtime/exec/step_clock.h"

#include <algorithm>
#include <utility>

#include "runtime/base/status.h"

namespace oriel::runtime {

absl::Status StepClock::Begin(Backend& backend, size_t steps) {
  while (events_.size() < steps + 2) {
    ORIEL_ASSIGN_OR_RETURN(std::unique_ptr<Backend::Event> event, backend.MakeTimedEvent());
    events_.push_back(std::move(event));
  }
  steps_ = steps;
  return backend.Record(*events_[0], 0);
}

absl::Status StepClock::Mark(Backend& backend, size_t step) {
  ORIEL_RETURN_IF_ERROR(backend.Record(*events_[step + 1], 0));
  return step + 1 < steps_ ? absl::OkStatus() : backend.Record(*events_[step + 2], 0);
}

absl::Status StepClock::AddTo(Backend& backend, SegmentProfile& profile) const {
  if (steps_ == 0) return absl::OkStatus();
  ORIEL_ASSIGN_OR_RETURN(const int64_t empty,
                         backend.NanosecondsBetween(*events_[steps_], *events_[steps_ + 1]));
  int64_t& least = profile.least_empty_nanoseconds;
  least = profile.runs <= 1 ? empty : std::min(least, empty);
  for (size_t i = 0; i < std::min(profile.nanoseconds.size(), steps_); ++i) {
    ORIEL_ASSIGN_OR_RETURN(const int64_t nanoseconds,
                           backend.NanosecondsBetween(*events_[i], *events_[i + 1]));
    AddRun(i, nanoseconds, profile);
  }
  return absl::OkStatus();
}

void AddRun(size_t instruction, int64_t nanoseconds, SegmentProfile& profile) {
  profile.nanoseconds[instruction] += nanoseconds;
  int64_t& least = profile.least_nanoseconds[instruction];
  least = profile.runs <= 1 ? nanoseconds : std::min(least, nanoseconds);
}

}  // namespace oriel::runtime
