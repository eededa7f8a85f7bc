// From one sharding of a tensor to another, as a sequence of single collectives.
#ifndef ORIEL_PASSES_PROPAGATE_RESHARD_H_
#define ORIEL_PASSES_PROPAGATE_RESHARD_H_

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "passes/strategize/sharding.h"

namespace oriel {

struct ReshardStep {
  enum class Kind { kAllReduce, kReduceScatter, kAllGather, kAllToAll, kSlice };
  Kind kind;
  AxisList axes;          // in grid order
  int64_t dim = 0;        // cut or joined; of an all-to-all: cut
  int64_t joinedDim = 0;  // of an all-to-all
  bool max = false;       // the reduction is a maximum
  Sharding result;        // after the step

  // "all_gather {a1} of dimension 0"
  std::string text(const AxisSizes& sizes) const;
};

struct Reshard {
  std::vector<ReshardStep> steps;
  // Bytes that a rank sends, by ring algorithms, with a little for each step and each byte that
  // is copied, so that the fewest and smallest win.
  double cost = 0;

  // Whether ranks have to talk for it: slices alone need no one else.
  bool communicates() const;
};

// Bytes that a rank of a group of `ranks` sends in ring algorithms; `bytes` is the size of the
// operand on a rank (Thakur et al. 2005, section 4).
double allReduceBytes(double bytes, int64_t ranks);
double reduceScatterBytes(double bytes, int64_t ranks);
double allGatherBytes(double bytes, int64_t ranks);
double allToAllBytes(double bytes, int64_t ranks);

// Finds cheapest sequences by searching over shardings, and remembers them.
class ReshardPlanner {
 public:
  explicit ReshardPlanner(const AxisSizes& sizes) : sizes_(sizes) {}

  // The cheapest sequence. `to` is pending over no axis over which `from` is not, and both divide
  // the shape.
  const Reshard& plan(mlir::RankedTensorType type, const Sharding& from, const Sharding& to);

  const AxisSizes& sizes() const { return sizes_; }

 private:
  Reshard search(mlir::RankedTensorType type, const Sharding& from, const Sharding& to) const;

  AxisSizes sizes_;
  std::map<std::tuple<const void*, Sharding, Sharding>, Reshard> known_;  // by type
};

}  // namespace oriel

#endif  // ORIEL_PASSES_PROPAGATE_RESHARD_H_
