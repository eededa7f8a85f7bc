#include "passes/stage/collective_time.h"

#include <string>
#include <vector>

namespace oriel {

namespace {

// Of a node of eight accelerators with fast links between them, each way; about what collectives of
// that size reach, and what a small one takes.
constexpr double kBytesPerSecond = 2e11;
constexpr double kLatency = 1e-5;

}  // namespace

double sentBytes(ir::CollectiveOpInterface collective, const Grid& grid) {
  std::vector<std::string> axes;
  for (auto axis : collective.getAxes().getAsRange<mlir::StringAttr>()) {
    axes.push_back(axis.str());
  }
  const int64_t ranks = grid.sizeOf(axes);
  const auto operands = static_cast<double>(ir::typesBytes(collective->getOperandTypes()));
  const auto others = static_cast<double>(ranks - 1);
  const auto all = static_cast<double>(ranks);
  const bool reduces = collective.getReductionName() != nullptr;
  // Of what is joined, each rank has a piece.
  if (!reduces && !collective.getSplitDimension()) return operands * others;
  const bool twice = reduces && !collective.getSplitDimension();  // scattered, then gathered
  return (twice ? 2 : 1) * operands * others / all;
}

double predictedCollectiveSeconds(double sentBytes) {
  return kLatency + sentBytes / kBytesPerSecond;
}

}  // namespace oriel
