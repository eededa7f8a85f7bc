#include "passes/cost/collective_time.h"

#include <algorithm>
#include <string>
#include <vector>

#include "passes/cost/cluster_attribute.h"
#include "passes/strategize/placement_attribute.h"

namespace oriel {

namespace {

std::vector<std::string> axesOf(ir::CollectiveOpInterface collective) {
  std::vector<std::string> axes;
  for (auto axis : collective.getAxes().getAsRange<mlir::StringAttr>()) {
    axes.push_back(axis.str());
  }
  return axes;
}

// The places of the group that the grid's first rank is in, ascending.
std::vector<int64_t> firstGroup(const Grid& grid, const std::vector<std::string>& axes,
                                const RankPlaces& places) {
  std::vector<int64_t> ranks = {0};
  int64_t stride = 1;
  for (auto axis = grid.axes.rbegin(); axis != grid.axes.rend(); stride *= axis->size, ++axis) {
    if (!llvm::is_contained(axes, axis->name)) continue;
    const size_t inner = ranks.size();
    for (int64_t i = 1; i < axis->size; ++i) {
      for (size_t j = 0; j < inner; ++j) ranks.push_back(ranks[j] + i * stride);
    }
  }
  for (int64_t& rank : ranks) rank = places.of(rank);
  return ranks;
}

}  // namespace

mlir::FailureOr<Grid> gridForCollectives(mlir::ModuleOp program,
                                         llvm::ArrayRef<mlir::Block*> blocks) {
  const bool isCut = llvm::any_of(blocks, [](mlir::Block* block) {
    return llvm::any_of(*block, llvm::IsaPred<ir::CollectiveOpInterface>);
  });
  return isCut ? getGrid(program) : Grid();
}

double sentBytes(ir::CollectiveOpInterface collective, const Grid& grid) {
  const int64_t ranks = grid.sizeOf(axesOf(collective));
  const auto operands = static_cast<double>(ir::typesBytes(collective->getOperandTypes()));
  const auto others = static_cast<double>(ranks - 1);
  const auto all = static_cast<double>(ranks);
  const bool reduces = collective.getReductionName() != nullptr;
  // Of what is joined, each rank has a piece.
  if (!reduces && !collective.getSplitDimension()) return operands * others;
  const bool twice = reduces && !collective.getSplitDimension();  // scattered, then gathered
  return (twice ? 2 : 1) * operands * others / all;
}

double predictedTransferSeconds(const std::vector<LinkLevel>& levels, const RankPlaces& places,
                                int64_t from, int64_t to, int64_t ranks, double bytes) {
  double slowest = 0;
  for (int64_t own = 0; own < ranks; ++own) {
    slowest = std::max(slowest, linkSeconds(levels, {places.of(from + own), places.of(to + own)},
                                            LinkUse::kTransfer, bytes));
  }
  return slowest;
}

LinkUse linkUseOf(ir::CollectiveOpInterface collective) {
  const bool splits = collective.getSplitDimension().has_value();
  if (collective.getReductionName()) return splits ? LinkUse::kGather : LinkUse::kAllReduce;
  return splits && collective.getJoinedDimension() ? LinkUse::kExchange : LinkUse::kGather;
}

CollectiveTimes::CollectiveTimes(mlir::Operation* inside, const Grid& grid)
    : grid_(grid), links_(linkLevelsOf(inside)), places_(rankPlacesOf(inside)) {}

double CollectiveTimes::seconds(ir::CollectiveOpInterface collective, double sentBytes) {
  std::vector<int64_t>& group = groups_[collective.getAxes()];
  if (group.empty()) group = firstGroup(grid_, axesOf(collective), places_);
  return linkSeconds(links_, group, linkUseOf(collective), sentBytes);
}

}  // namespace oriel
