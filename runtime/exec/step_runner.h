// Runs single steps of a segment.
#ifndef ORIEL_RUNTIME_EXEC_STEP_RUNNER_H_
#define ORIEL_RUNTIME_EXEC_STEP_RUNNER_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/backend/backend.h"
#include "runtime/exec/steps.h"
#include "runtime/exec/transfers.h"

namespace oriel::runtime {

class StepRunner {
 public:
  // All arguments outlive it. `settle` waits for what the device has to do, and returns what has
  // gone wrong there; see Transfers::Create.
  StepRunner(Backend& backend, Transfers& transfers, std::function<absl::Status()> settle)
      : backend_(backend),
        transfers_(transfers),
        settle_(std::move(settle)),
        asynchronous_(backend.IsAsynchronous()) {}

  absl::Status Run(const Step& step, int64_t microbatch);
  // A started collective, to its end or onto its stream: the call of its task. In the stream's
  // thread it uses the group and nothing else that changes.
  absl::Status RunStarted(const Step& step);

 private:
  absl::Status Start(const Step& step);
  absl::Status CommunicateNow(const Step& step);
  absl::Status Communicate(const Step& step);
  absl::Status Move(void* target, const void* source, int64_t bytes);
  absl::Status MoveAll(absl::Span<const PieceBuffer> pieces);

  Backend& backend_;
  Transfers& transfers_;
  const std::function<absl::Status()> settle_;
  const bool asynchronous_;
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_EXEC_STEP_RUNNER_H_
