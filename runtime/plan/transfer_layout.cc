#include "runtime/plan/transfer_layout.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"

namespace oriel::runtime {
namespace {

absl::StatusOr<TensorLayout> LayoutOn(const plan::Grid& grid, const plan::Sharding& sharding,
                                      const plan::Channel& channel, const char* side) {
  const std::string what = absl::StrCat("the ", side, " of channel '", channel.name(), "'");
  absl::StatusOr<TensorLayout> layout =
      TensorLayout::Create(grid, sharding, FromPlan(channel.global()).shape);
  if (!layout.ok()) return Annotate(layout.status(), what);
  if (layout->is_pending()) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " is a pending reduction, which can't be sent"));
  }
  return layout;
}

}  // namespace

absl::StatusOr<TransferLayout> TransferLayout::Create(const plan::Plan& plan,
                                                      const plan::Channel& channel) {
  const int source = channel.source_grid(), target = channel.target_grid();
  const auto has = [&](int grid) { return grid >= 0 && grid < plan.grids_size(); };
  if (!has(source) || !has(target) || source == target) {
    return absl::InvalidArgumentError(absl::StrCat("channel '", channel.name(), "' goes from grid ",
                                                   source, " to grid ", target, " of ",
                                                   plan.grids_size()));
  }
  ORIEL_ASSIGN_OR_RETURN(TensorLayout source_layout,
                         LayoutOn(plan.grids(source), channel.source(), channel, "source"));
  ORIEL_ASSIGN_OR_RETURN(TensorLayout target_layout,
                         LayoutOn(plan.grids(target), channel.target(), channel, "target"));
  return TransferLayout(std::move(source_layout), std::move(target_layout),
                        GridLayout(plan.grids(source)), GridLayout(plan.grids(target)));
}

TransferLayout::TransferLayout(TensorLayout source, TensorLayout target,
                               const GridLayout& source_grid, const GridLayout& target_grid)
    : source_(std::move(source)),
      target_(std::move(target)),
      first_receiver_(target_grid.first_rank()),
      receivers_(target_grid.size()) {
  std::map<Shape, size_t> places;  // of a box among the replicas, by where it starts
  for (int64_t i = 0; i < source_grid.size(); ++i) {
    const int64_t rank = source_grid.first_rank() + i;
    Box box = source_.BoxOf(rank);
    const auto [place, is_new] = places.emplace(box.start, replicas_.size());
    if (is_new) replicas_.push_back({std::move(box), {}});
    replicas_[place->second].ranks.push_back(rank);
  }
}

std::vector<TransferPart> TransferLayout::SentBy(int64_t rank) const {
  const Box mine = source_.BoxOf(rank);
  const auto replicas = std::find_if(replicas_.begin(), replicas_.end(),
                                     [&](const Replicas& r) { return r.box == mine; });
  const std::vector<int64_t>& ranks = replicas->ranks;
  std::vector<TransferPart> parts;
  size_t turn = 0;
  for (int64_t i = 0; i < receivers_; ++i) {
    Box box = Intersect(mine, target_.BoxOf(first_receiver_ + i));
    if (box.num_elements() == 0) continue;
    if (ranks[turn++ % ranks.size()] == rank) {
      parts.push_back({first_receiver_ + i, std::move(box)});
    }
  }
  return parts;
}

std::vector<TransferPart> TransferLayout::ReceivedBy(int64_t rank) const {
  const Box mine = target_.BoxOf(rank);
  std::vector<TransferPart> parts;
  for (const Replicas& replicas : replicas_) {
    Box box = Intersect(replicas.box, mine);
    if (box.num_elements() == 0) continue;
    size_t turn = 0;
    for (int64_t earlier = first_receiver_; earlier < rank; ++earlier) {
      turn += Intersect(replicas.box, target_.BoxOf(earlier)).num_elements() > 0 ? 1 : 0;
    }
    parts.push_back({replicas.ranks[turn % replicas.ranks.size()], std::move(box)});
  }
  std::sort(parts.begin(), parts.end(),
            [](const TransferPart& a, const TransferPart& b) { return a.peer < b.peer; });
  return parts;
}

}  // namespace oriel::runtime
