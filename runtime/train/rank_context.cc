#include "runtime/train/rank_context.h"

#include "runtime/base/status.h"

namespace oriel::runtime {

absl::StatusOr<bool> AnyRank(const RankContext& context, bool own) {
  int32_t any = own ? 1 : 0;
  if (context.world != nullptr) {
    const ReduceBuffer buffer{&any, &any, 1, DType::kI32};
    ORIEL_RETURN_IF_ERROR(
        context.world->AllReduce(Reduction::kMax, absl::MakeConstSpan(&buffer, 1)));
  }
  return any != 0;
}

absl::StatusOr<bool> AnyInterrupted(const RankContext& context) {
  return AnyRank(context, context.interrupted());
}

}  // namespace oriel::runtime
