#include "runtime/exec/groups.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status.h"

namespace oriel::runtime {

absl::StatusOr<CommunicationGroups> CommunicationGroups::Create(const plan::Plan& plan,
                                                                const plan::Program& program,
                                                                int64_t rank, Communicator* world) {
  CommunicationGroups groups;
  for (const auto& segment : program.segments()) {
    for (const auto& instruction : segment.instructions()) {
      if (instruction.has_collective()) groups.groups_[Key(instruction.collective())] = nullptr;
    }
  }
  const plan::Grid* grid = GridOfRank(plan, rank);
  if (grid == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("rank ", rank, " is in no grid of the plan"));
  }
  groups.rank_ = rank;
  groups.layout_.emplace(*grid);
  for (auto& [axes, communicator] : groups.groups_) {
    const std::vector<int64_t> ranks = groups.layout_->Group(rank, axes);
    if (ranks.size() == 1) continue;
    if (world == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("a collective over ", absl::StrJoin(axes, ", "), " spans ", ranks.size(),
                       " ranks, but there is no communicator"));
    }
    ORIEL_ASSIGN_OR_RETURN(communicator, world->Group(ranks));
  }
  return groups;
}

Communicator* CommunicationGroups::Find(const plan::Collective& collective) const {
  const auto found = groups_.find(Key(collective));
  return found == groups_.end() ? nullptr : found->second.get();
}

GridLayout::Piece CommunicationGroups::PieceOf(
    const google::protobuf::RepeatedPtrField<std::string>& axes) const {
  return layout_->PieceOf(rank_, {axes.begin(), axes.end()});
}

CommunicationGroups::Axes CommunicationGroups::Key(const plan::Collective& collective) {
  Axes axes(collective.axes().begin(), collective.axes().end());
  std::sort(axes.begin(), axes.end());
  return axes;
}

}  // namespace oriel::runtime
