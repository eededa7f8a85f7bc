#include "passes/propagate/reshard.h"

#include <algorithm>
#include <memory>
#include <queue>

#include "ir/interfaces/interfaces.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"

namespace oriel {

namespace {

using Kind = ReshardStep::Kind;

// What a step costs beside its bytes, and what copying a byte costs.
constexpr double kStepBytes = 256;
constexpr double kCopy = 0.01;

double share(int64_t ranks) { return static_cast<double>(ranks - 1) / static_cast<double>(ranks); }

// Whether the axis comes next in what `target` cuts, after what `current` does.
bool isNext(const AxisList& current, const AxisList& target, int axis) {
  return current.size() < target.size() && target[current.size()] == axis &&
         std::equal(current.begin(), current.end(), target.begin());
}

bool isPrefix(const AxisList& axes, const AxisList& of) {
  return axes.size() <= of.size() && std::equal(axes.begin(), axes.end(), of.begin());
}

// The single steps that lead from a sharding towards another.
class Steps {
 public:
  Steps(const AxisSizes& sizes, llvm::ArrayRef<int64_t> shape, const Sharding& from,
        const Sharding& to)
      : sizes_(sizes), shape_(shape), from_(from), to_(to) {}

  std::vector<ReshardStep> find() {
    reduce(from_.sum, to_.sum, false);
    reduce(from_.max, to_.max, true);
    for (size_t dim = 0; dim < from_.dims.size(); ++dim) {
      shrink(dim);
      slice(dim);
    }
    return std::move(steps_);
  }

 private:
  bool fits(size_t dim, int axis) const {
    return shape_[dim] % (sizes_.product(from_.dims[dim]) * sizes_[axis]) == 0;
  }

  ReshardStep& add(Kind kind, AxisList axes, size_t dim, bool max) {
    steps_.push_back({kind, std::move(axes), static_cast<int64_t>(dim), 0, max, from_});
    return steps_.back();
  }

  void drop(ReshardStep& step) const {
    AxisList& pending = step.max ? step.result.max : step.result.sum;
    llvm::erase_if(pending, [&](int axis) { return llvm::is_contained(step.axes, axis); });
  }

  void reduce(const AxisList& pending, const AxisList& kept, bool max) {
    AxisList unwanted, neverCut;
    for (int axis : pending) {
      if (llvm::is_contained(kept, axis)) continue;
      unwanted.push_back(axis);
      if (!to_.cuts(axis)) neverCut.push_back(axis);
      for (size_t dim = 0; dim < from_.dims.size(); ++dim) {
        if (!isNext(from_.dims[dim], to_.dims[dim], axis) || !fits(dim, axis)) continue;
        ReshardStep& step = add(Kind::kReduceScatter, {axis}, dim, max);
        drop(step);
        step.result.dims[dim].push_back(axis);
      }
    }
    if (!neverCut.empty()) drop(add(Kind::kAllReduce, neverCut, 0, max));
    if (unwanted.size() > neverCut.size()) drop(add(Kind::kAllReduce, unwanted, 0, max));
  }

  // The innermost axis of a dimension leaves it.
  void shrink(size_t dim) {
    if (isPrefix(from_.dims[dim], to_.dims[dim])) return;
    int axis = from_.dims[dim].back();
    add(Kind::kAllGather, {axis}, dim, false).result.dims[dim].pop_back();
    for (size_t other = 0; other < from_.dims.size(); ++other) {
      if (other == dim || !isNext(from_.dims[other], to_.dims[other], axis) || !fits(other, axis)) {
        continue;
      }
      ReshardStep& step = add(Kind::kAllToAll, {axis}, other, false);
      step.joinedDim = static_cast<int64_t>(dim);
      step.result.dims[dim].pop_back();
      step.result.dims[other].push_back(axis);
    }
  }

  void slice(size_t dim) {
    const AxisList &have = from_.dims[dim], &want = to_.dims[dim];
    if (have.size() >= want.size() || !isPrefix(have, want)) return;
    int axis = want[have.size()];
    if (from_.uses(axis) || !fits(dim, axis)) return;
    add(Kind::kSlice, {axis}, dim, false).result.dims[dim].push_back(axis);
  }

  const AxisSizes& sizes_;
  llvm::ArrayRef<int64_t> shape_;
  const Sharding &from_, &to_;
  std::vector<ReshardStep> steps_;
};

double stepCost(const ReshardStep& step, double bytes, int64_t ranks) {
  switch (step.kind) {
    case Kind::kAllReduce:
      return allReduceBytes(bytes, ranks) + kStepBytes;
    case Kind::kReduceScatter:
      return reduceScatterBytes(bytes, ranks) + kStepBytes;
    case Kind::kAllGather:
      return allGatherBytes(bytes, ranks) + kStepBytes;
    case Kind::kAllToAll:
      return allToAllBytes(bytes, ranks) + kStepBytes;
    case Kind::kSlice:
      return bytes / static_cast<double>(ranks) * kCopy;
  }
  llvm_unreachable("all kinds are listed");
}

// Two steps in a row as one: more axes in the same collective, if pieces stay in grid order.
bool merge(ReshardStep& first, const ReshardStep& second) {
  if (first.kind != second.kind || first.dim != second.dim || first.max != second.max) return false;
  if (first.kind == Kind::kAllToAll) return false;
  AxisList axes = first.axes;
  if (first.kind == Kind::kAllReduce) {
    for (int axis : second.axes) insertSorted(axes, axis);
  } else if (first.kind == Kind::kAllGather) {
    // The inner axis was joined first.
    axes.insert(axes.begin(), second.axes.begin(), second.axes.end());
  } else {
    axes.append(second.axes.begin(), second.axes.end());
  }
  if (!llvm::is_sorted(axes)) return false;
  first.axes = std::move(axes);
  first.result = second.result;
  return true;
}

}  // namespace

double allReduceBytes(double bytes, int64_t ranks) { return 2 * share(ranks) * bytes; }
double reduceScatterBytes(double bytes, int64_t ranks) { return share(ranks) * bytes; }
double allGatherBytes(double bytes, int64_t ranks) {
  return static_cast<double>(ranks - 1) * bytes;
}
double allToAllBytes(double bytes, int64_t ranks) { return share(ranks) * bytes; }

std::string ReshardStep::text(const AxisSizes& sizes) const {
  static constexpr const char* kNames[] = {"all_reduce", "reduce_scatter", "all_gather",
                                           "all_to_all", "slice_local"};
  std::string text = kNames[static_cast<int>(kind)];
  text += " {";
  for (auto [i, axis] : llvm::enumerate(axes)) text += (i > 0 ? ", " : "") + sizes.name(axis);
  text += "}";
  if (kind != Kind::kAllReduce) text += " of dimension " + std::to_string(dim);
  return text;
}

bool Reshard::communicates() const {
  return llvm::any_of(steps, [](const ReshardStep& step) { return step.kind != Kind::kSlice; });
}

const Reshard& ReshardPlanner::plan(mlir::RankedTensorType type, const Sharding& from,
                                    const Sharding& to) {
  auto [it, isNew] =
      known_.try_emplace({mlir::Type(type).getAsOpaquePointer(), from, to}, Reshard{});
  if (isNew && from != to) it->second = search(type, from, to);
  return it->second;
}

// Dijkstra's algorithm over shardings.
Reshard ReshardPlanner::search(mlir::RankedTensorType type, const Sharding& from,
                               const Sharding& to) const {
  struct Node {
    double cost;
    Sharding previous;
    ReshardStep step;
  };
  std::map<Sharding, Node> best;
  using Entry = std::pair<double, Sharding>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> queue;
  const auto bytes = static_cast<double>(ir::typeBytes(type));
  best[from] = {0, from, {}};
  queue.emplace(0, from);
  while (!queue.empty()) {
    auto [cost, current] = queue.top();
    queue.pop();
    if (cost > best.at(current).cost) continue;
    if (current == to) break;
    double local = bytes / static_cast<double>(sizes_.product(current.cutting()));
    for (ReshardStep& step : Steps(sizes_, type.getShape(), current, to).find()) {
      double total = cost + stepCost(step, local, sizes_.product(step.axes));
      auto [it, isNew] = best.try_emplace(step.result, Node{total, current, step});
      if (!isNew && it->second.cost <= total) continue;
      it->second = {total, current, step};
      queue.emplace(total, step.result);
    }
  }
  auto found = best.find(to);
  if (found == best.end()) llvm::report_fatal_error("a sharding that no collectives lead to");
  Reshard result;
  result.cost = found->second.cost;
  for (Sharding state = to; state != from; state = best.at(state).previous) {
    result.steps.push_back(best.at(state).step);
  }
  std::reverse(result.steps.begin(), result.steps.end());
  std::vector<ReshardStep> merged;
  for (ReshardStep& step : result.steps) {
    if (merged.empty() || !merge(merged.back(), step)) merged.push_back(std::move(step));
  }
  result.steps = std::move(merged);
  return result;
}

}  // namespace oriel
