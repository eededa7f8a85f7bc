// What training and evaluation share on one rank.
#ifndef ORIEL_RUNTIME_TRAIN_RANK_CONTEXT_H_
#define ORIEL_RUNTIME_TRAIN_RANK_CONTEXT_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/comm/communicator.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/trace.h"
#include "runtime/plan/plan.pb.h"

namespace oriel::runtime {

struct RankContext {
  const plan::Plan* plan = nullptr;
  int64_t rank = 0;
  Communicator* world = nullptr;  // null for one rank
  Executor* executor = nullptr;
  TraceRecorder* trace = nullptr;  // the executor's; null: nothing is recorded
  std::function<bool()> interrupted = [] { return false; };  // asked between steps
  bool terminal = false;  // progress is shown on one line that is written over

  bool is_first() const { return rank == 0; }
};

// Whether it is true on any rank: all ranks get the same answer. Collective.
absl::StatusOr<bool> AnyRank(const RankContext& context, bool own);
// Whether any rank was interrupted: all ranks get the same answer, so that they stop at the
// same step. Collective.
absl::StatusOr<bool> AnyInterrupted(const RankContext& context);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_TRAIN_RANK_CONTEXT_H_
