#include "passes/stage/collective_time.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "passes/strategize/cluster_attribute.h"

namespace oriel {

namespace {

// Without a cluster: a node of eight accelerators with fast links between them, each way; about
// what collectives of that size reach, and what a small one takes.
constexpr double kBytesPerSecond = 2e11;
constexpr double kLatency = 1e-5;
// What collectives reach of the links' bandwidth, about.
constexpr double kBandwidthReached = 0.45;

std::vector<std::string> axesOf(ir::CollectiveOpInterface collective) {
  std::vector<std::string> axes;
  for (auto axis : collective.getAxes().getAsRange<mlir::StringAttr>()) {
    axes.push_back(axis.str());
  }
  return axes;
}

// The ranks of the group that the grid's first rank is in, ascending.
std::vector<int64_t> firstGroup(const Grid& grid, const std::vector<std::string>& axes) {
  std::vector<int64_t> ranks = {0};
  int64_t stride = 1;
  for (auto axis = grid.axes.rbegin(); axis != grid.axes.rend(); stride *= axis->size, ++axis) {
    if (!llvm::is_contained(axes, axis->name)) continue;
    const size_t inner = ranks.size();
    for (int64_t i = 1; i < axis->size; ++i) {
      for (size_t j = 0; j < inner; ++j) ranks.push_back(ranks[j] + i * stride);
    }
  }
  return ranks;
}

}  // namespace

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

double secondsOnLinks(const std::vector<LinkLevel>& levels, const std::vector<int64_t>& ranks,
                      bool reducesAll, double sentBytes) {
  if (levels.empty()) return kLatency + sentBytes / kBytesPerSecond;
  double latency = 0, bandwidth = std::numeric_limits<double>::infinity();
  int64_t domain = 1;  // devices of the level below
  for (const LinkLevel& level : levels) {
    // Members in the first domain below send what leaves it side by side.
    const auto inside = static_cast<double>(llvm::count_if(
        ranks, [&](int64_t rank) { return rank / domain == ranks.front() / domain; }));
    if (inside == static_cast<double>(ranks.size())) break;  // nothing leaves it
    latency = level.latency;
    bandwidth = std::min(bandwidth, inside * level.usableBandwidth());
    domain = level.devices;
  }
  const auto others = static_cast<double>(ranks.size()) - 1;
  const double steps = std::min(others, std::ceil(std::log2(others + 1)));
  return (reducesAll ? 2 : 1) * steps * latency + sentBytes / (kBandwidthReached * bandwidth);
}

double predictedCollectiveSeconds(ir::CollectiveOpInterface collective, const Grid& grid,
                                  double sentBytes) {
  const bool reducesAll =
      collective.getReductionName() != nullptr && !collective.getSplitDimension();
  return secondsOnLinks(linkLevelsOf(collective), firstGroup(grid, axesOf(collective)), reducesAll,
                        sentBytes);
}

}  // namespace oriel
