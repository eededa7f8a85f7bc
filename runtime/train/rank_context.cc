#include "runtime/train/rank_context.h"

#include "runtime/base/status.h"

namespace oriel::runtime {

absl::StatusOr<bool> AnyInterrupted(const RankContext& context) {
  int32_t stop = context.interrupted() ? 1 : 0;
  if (context.world != nullptr) {
    const ReduceBuffer buffer{&stop, &stop, 1, DType::kI32};
    ORIEL_RETURN_IF_ERROR(
        context.world->AllReduce(Reduction::kMax, absl::MakeConstSpan(&buffer, 1)));
  }
  return stop != 0;
}

}  // namespace oriel::runtime
