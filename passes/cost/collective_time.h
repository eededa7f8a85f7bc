// How long a collective takes on the links of the module's cluster, beside OpTimes of op_time.h.
#ifndef ORIEL_PASSES_COST_COLLECTIVE_TIME_H_
#define ORIEL_PASSES_COST_COLLECTIVE_TIME_H_

#include <cstdint>
#include <vector>

#include "ir/oriel/oriel.h"
#include "llvm/ADT/DenseMap.h"
#include "passes/cost/cluster.h"
#include "passes/cost/link_time.h"
#include "passes/strategize/grid.h"
#include "passes/strategy/placement.h"

namespace oriel {

// The grid of a program; without any where nothing of these blocks is a collective, which alone
// needs one. Fails with a diagnostic for a grid that is missing or wrong.
mlir::FailureOr<Grid> gridForCollectives(mlir::ModuleOp program,
                                         llvm::ArrayRef<mlir::Block*> blocks);

// Bytes that each rank of a group of the grid sends and receives: of all operands of the
// collective, by an algorithm that sends no more than it must (a ring: Thakur, Rabenseifner and
// Gropp 2005).
double sentBytes(ir::CollectiveOpInterface collective, const Grid& grid);

// What it does to links.
LinkUse linkUseOf(ir::CollectiveOpInterface collective);

// Of a transfer from each of `ranks` ranks of a grid to its like in another one; `from` and `to`
// are their first ranks. Of the pair that is farthest apart, for all end a step together.
double predictedTransferSeconds(const std::vector<LinkLevel>& levels, const RankPlaces& places,
                                int64_t from, int64_t to, int64_t ranks, double bytes);

// What the module of an op says of its links and of the places of ranks, read once.
class CollectiveTimes {
 public:
  // The grid outlives this.
  CollectiveTimes(mlir::Operation* inside, const Grid& grid);

  // Of the collective, and of others over the same axes that travel with it; they send `sentBytes`
  // together. On the links of the cluster, where its grid begins with a node.
  double seconds(ir::CollectiveOpInterface collective, double sentBytes);
  // Of the collective alone.
  double seconds(ir::CollectiveOpInterface collective) {
    return seconds(collective, sentBytes(collective, grid_));
  }

 private:
  const Grid& grid_;
  const std::vector<LinkLevel> links_;
  const RankPlaces places_;
  llvm::DenseMap<mlir::Attribute, std::vector<int64_t>> groups_;  // the first one, by its axes
};

}  // namespace oriel

#endif  // ORIEL_PASSES_COST_COLLECTIVE_TIME_H_
