#include "runtime/train/piece_gatherer.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/status.h"
#include "runtime/plan/plan_types.h"

namespace oriel::runtime {

absl::StatusOr<PieceGatherer> PieceGatherer::Create(const plan::Plan& plan, Communicator* world) {
  if (plan.grids_size() != 1) {
    return absl::UnimplementedError("tensors of several pipeline stages are not gathered yet");
  }
  return PieceGatherer(plan.grids(0), world);
}

absl::Status PieceGatherer::Sum(const TensorLayout& layout, DType dtype, int64_t count,
                                void* values) {
  ORIEL_ASSIGN_OR_RETURN(Communicator * group, GroupOver(layout.partial()));
  if (group == nullptr) return absl::OkStatus();
  const ReduceBuffer buffer{values, values, count, dtype};
  return group->AllReduce(Reduction::kSum, absl::MakeConstSpan(&buffer, 1));
}

absl::Status PieceGatherer::Gather(const TensorLayout& layout, DType dtype, const void* piece,
                                   void* target) {
  if (!layout.Owns(rank())) return absl::OkStatus();
  const int64_t element = DTypeBytes(dtype), bytes = NumElements(layout.piece()) * element;
  const Box whole = WholeBox(layout.global());
  // The owners are the ranks along the axes that cut, from rank 0 on.
  ORIEL_ASSIGN_OR_RETURN(Communicator * group, GroupOver(layout.CutAxes()));
  const std::vector<int64_t> owners = layout.Owners();
  for (size_t i = 0; i < owners.size(); ++i) {
    const void* source = piece;
    // Rank 0 needs to send its own piece to nobody.
    if (owners[i] != 0 && group != nullptr) {
      passing_.resize(bytes);
      if (owners[i] == rank()) std::memcpy(passing_.data(), piece, bytes);
      ORIEL_RETURN_IF_ERROR(group->Broadcast(static_cast<int64_t>(i), passing_.data(), bytes));
      source = passing_.data();
    }
    if (rank() == 0) CopyBox(layout.BoxOf(owners[i]), source, whole, target, element);
  }
  return absl::OkStatus();
}

absl::StatusOr<Communicator*> PieceGatherer::GroupOver(const std::vector<std::string>& axes) {
  const std::vector<int64_t> ranks = GridLayout(*grid_).Group(rank(), axes);
  if (ranks.size() == 1) return nullptr;
  if (world_ == nullptr) {
    return absl::InvalidArgumentError("a tensor lies over several ranks, but there is one");
  }
  std::vector<std::string> key = axes;
  std::sort(key.begin(), key.end());
  std::unique_ptr<Communicator>& group = groups_[key];
  if (group == nullptr) {
    ORIEL_ASSIGN_OR_RETURN(group, world_->Group(ranks));
  }
  return group.get();
}

}  // namespace oriel::runtime
