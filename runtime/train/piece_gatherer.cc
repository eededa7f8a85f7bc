#include "runtime/train/piece_gatherer.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"

namespace oriel::runtime {
namespace {

constexpr int64_t kTag = kMaxTags - 1;  // those from 0 on are of the plan's channels

}  // namespace

absl::StatusOr<PieceGatherer> PieceGatherer::Create(const plan::Plan& plan, Communicator* world) {
  const int64_t rank = world == nullptr ? 0 : world->rank();
  const plan::Grid* grid = GridOfRank(plan, rank);
  if (grid == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("the plan has no grid with rank ", rank));
  }
  return PieceGatherer(GridLayout(*grid), world);
}

absl::Status PieceGatherer::Sum(const TensorLayout& layout, DType dtype, int64_t count,
                                void* values) {
  if (!layout.Contains(rank())) return absl::OkStatus();
  const std::vector<int64_t> ranks = grid_.Group(rank(), layout.partial());
  if (ranks.size() == 1) return absl::OkStatus();
  ORIEL_ASSIGN_OR_RETURN(Communicator * group, GroupOf(ranks));
  const ReduceBuffer buffer{values, values, count, dtype};
  return group->AllReduce(Reduction::kSum, absl::MakeConstSpan(&buffer, 1));
}

absl::Status PieceGatherer::Gather(const TensorLayout& layout, DType dtype, const void* piece,
                                   void* target) {
  const Box whole = WholeBox(layout.global());
  return Gather(layout, dtype, piece, [&](const Box& box, const void* data) {
    CopyBox(box, data, whole, target, DTypeBytes(dtype));
  });
}

absl::Status PieceGatherer::Gather(const TensorLayout& layout, DType dtype, const void* piece,
                                   const TakeBox& take) {
  const int64_t bytes = NumElements(layout.piece()) * DTypeBytes(dtype);
  for (const int64_t owner : layout.Owners()) {
    const void* source = piece;
    // Rank 0 needs to send its own piece to nobody.
    if (owner != 0 && (rank() == 0 || rank() == owner)) {
      ORIEL_RETURN_IF_ERROR(CheckWorld());
      if (rank() == 0) passing_.resize(bytes);
      ORIEL_ASSIGN_OR_RETURN(std::unique_ptr<Message> message,
                             rank() == 0 ? world_->Receive(owner, kTag, passing_.data(), bytes)
                                         : world_->Send(0, kTag, piece, bytes));
      ORIEL_RETURN_IF_ERROR(message->Wait());
      source = passing_.data();
    }
    if (rank() != 0) continue;
    const Box box = layout.BoxOf(owner), content = layout.ContentOf(owner);
    if (content.num_elements() == 0) continue;
    if (content != box) {
      content_.resize(static_cast<size_t>(content.num_elements() * DTypeBytes(dtype)));
      CopyBox(box, source, content, content_.data(), DTypeBytes(dtype));
      source = content_.data();
    }
    take(content, source);
  }
  return absl::OkStatus();
}

absl::Status PieceGatherer::CheckWorld() const {
  return world_ != nullptr
             ? absl::OkStatus()
             : absl::InvalidArgumentError("a tensor lies over several ranks, but there is one");
}

absl::StatusOr<Communicator*> PieceGatherer::GroupOf(const std::vector<int64_t>& ranks) {
  ORIEL_RETURN_IF_ERROR(CheckWorld());
  std::unique_ptr<Communicator>& group = groups_[ranks];
  if (group == nullptr) {
    ORIEL_ASSIGN_OR_RETURN(group, world_->Group(ranks));
  }
  return group.get();
}

}  // namespace oriel::runtime
