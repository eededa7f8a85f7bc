// How long each step of a segment takes on a device that is asynchronous.
//
//   ORIEL_RETURN_IF_ERROR(clock.Begin(backend, steps));
//   .. a step ..
//   ORIEL_RETURN_IF_ERROR(clock.Mark(backend, i));       // behind it, for each step
//   .. all that was put on the computing stream is done ..
//   ORIEL_RETURN_IF_ERROR(clock.AddTo(backend, profile));
//
// Between two steps an event is put on the computing stream, so that the device need not wait for
// the host: a step takes from the event before it to the one behind. Work on other streams counts
// where the computing stream waits for it. Behind the last step there is one event more: what
// events take where the device has more to do than the host has given it.
#ifndef ORIEL_RUNTIME_EXEC_STEP_CLOCK_H_
#define ORIEL_RUNTIME_EXEC_STEP_CLOCK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "runtime/backend/backend.h"
#include "runtime/exec/executor.h"

namespace oriel::runtime {

class StepClock {
 public:
  absl::Status Begin(Backend& backend, size_t steps);
  absl::Status Mark(Backend& backend, size_t step);
  // Adds what the steps have taken since Begin.
  absl::Status AddTo(Backend& backend, SegmentProfile& profile) const;

 private:
  size_t steps_ = 0;
  // Before the first step, behind each, and once more behind the last one.
  std::vector<std::unique_ptr<Backend::Event>> events_;
};

// Adds a run of an instruction.
void AddRun(size_t instruction, int64_t nanoseconds, SegmentProfile& profile);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_EXEC_STEP_CLOCK_H_
