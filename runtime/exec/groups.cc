#include "runtime/exec/groups.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_types.h"

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
  for (const auto& grid : plan.grids()) {
    const GridLayout layout(grid);
    if (!layout.Contains(rank)) continue;
    for (auto& [axes, communicator] : groups.groups_) {
      const std::vector<int64_t> ranks = layout.Group(rank, axes);
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
  return absl::InvalidArgumentError(absl::StrCat("rank ", rank, " is in no grid of the plan"));
}

Communicator* CommunicationGroups::Find(const plan::Collective& collective) const {
  const auto found = groups_.find(Key(collective));
  return found == groups_.end() ? nullptr : found->second.get();
}

CommunicationGroups::Axes CommunicationGroups::Key(const plan::Collective& collective) {
  Axes axes(collective.axes().begin(), collective.axes().end());
  std::sort(axes.begin(), axes.end());
  return axes;
}

}  // namespace oriel::runtime
