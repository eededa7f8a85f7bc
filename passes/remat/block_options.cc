#include "passes/remat/block_options.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "passes/remat/min_cut.h"

namespace oriel {

namespace {

// Drops options for which a mixture of two others keeps fewer bytes in less time. By falling bytes.
std::vector<BlockOption> hullOf(std::vector<BlockOption> options) {
  std::vector<BlockOption> hull;
  for (BlockOption& option : options) {
    while (!hull.empty() && hull.back().seconds >= option.seconds) hull.pop_back();
    auto slope = [](const BlockOption& a, const BlockOption& b) {
      return (b.seconds - a.seconds) / static_cast<double>(a.bytes - b.bytes);
    };
    while (hull.size() > 1 &&
           slope(hull[hull.size() - 2], hull.back()) >= slope(hull.back(), option)) {
      hull.pop_back();
    }
    hull.push_back(std::move(option));
  }
  return hull;
}

class OptionFinder {
 public:
  OptionFinder(const StashGraph& graph, int64_t block, const std::vector<int>& shares)
      : graph_(graph), block_(block), shares_(shares), droppable_(droppable(graph, block)) {
    // All that could run again: with every value at hand that is not the block's.
    const std::vector<bool> any(graph.ops.size(), true);
    const Recomputation whole = recomputation(graph, block, droppable_, any);
    ops_ = whole.ops;
    leaves_ = whole.added;
    times_ = timesAgain(graph, whole);
    for (int op : ops_) ticks_ += ticksOf(op);
    for (int value : droppable_) bytes_ += bytesOf(value);
  }

  std::vector<BlockOption> find() {
    if (ops_.empty()) return {BlockOption{{}, bytes_, 0}};
    const Point fastest = solve(1, bytes_ + leafBytes() + 1), smallest = solve(ticks_ + 1, 1);
    add(fastest);
    add(smallest);
    between(fastest, smallest);
    std::vector<BlockOption> options;
    for (auto& [bytes, point] : points_) {
      options.push_back({point.edit, bytes, point.edit.seconds(graph_)});
    }
    std::reverse(options.begin(), options.end());
    return hullOf(std::move(options));
  }

 private:
  struct Point {
    Recomputation edit;
    int64_t bytes = 0, ticks = 0;
  };

  // Cuts are of integers: 0.1 ns is less than any op takes. As often as it runs at most.
  int64_t ticksOf(int op) const { return std::llround(times_[op] * graph_.ops[op].seconds * 1e10); }

  int64_t bytesOf(int value) const { return graph_.values[value].bytes / shares_[value]; }
  int64_t leafBytes() const {
    int64_t sum = 0;
    for (int value : leaves_) sum += bytesOf(value);
    return sum;
  }

  // Of values that only one op of its cluster reads.
  bool isInsideOfCluster(int value) const {
    const StashGraph::Value& node = graph_.values[value];
    const int64_t cluster = graph_.ops[node.op].cluster;
    return cluster != StashGraph::kNone && node.users.size() == 1 && !node.stashed &&
           graph_.ops[node.users.front()].cluster == cluster;
  }

  // The option with the least of byteWeight * bytes + tickWeight * ticks.
  Point solve(int64_t byteWeight, int64_t tickWeight) const {
    constexpr int kSource = 0, kSink = 1;
    MinCut cut(2);
    std::map<int, int> nodeOfOp, nodeOfValue;
    for (int op : ops_) nodeOfOp[op] = cut.addNode();
    auto addValue = [&](int value, int from, bool mayKeep) {
      const int node = nodeOfValue[value] = cut.addNode();
      cut.add(from, node,
              mayKeep ? MinCut::Capacity(byteWeight) * bytesOf(value) : MinCut::unlimited());
      return node;
    };
    for (int value : leaves_) addValue(value, kSource, true);
    for (int op : ops_) {
      const StashGraph::Op& node = graph_.ops[op];
      cut.add(kSource, nodeOfOp[op], MinCut::Capacity(tickWeight) * ticksOf(op));
      for (int value : node.results) {
        addValue(value, nodeOfOp[op], !node.isFree && !isInsideOfCluster(value));
      }
    }
    for (int op : ops_) {
      for (int operand : graph_.ops[op].operands) {
        auto value = nodeOfValue.find(operand);
        if (value != nodeOfValue.end() && !isAtHand(operand)) {
          cut.add(value->second, nodeOfOp[op], MinCut::unlimited());
        }
      }
    }
    for (int value : droppable_) cut.add(nodeOfValue.at(value), kSink, MinCut::unlimited());
    return pointOf(cut.sinkSide(kSource, kSink), nodeOfOp);
  }

  // In the stash whatever is decided here.
  bool isAtHand(int value) const {
    const StashGraph::Value& node = graph_.values[value];
    return (node.stashed || node.pinned) &&
           !std::binary_search(droppable_.begin(), droppable_.end(), value);
  }

  Point pointOf(const std::vector<bool>& sinkSide, const std::map<int, int>& nodeOfOp) const {
    std::vector<bool> runs(graph_.ops.size());
    for (auto [op, node] : nodeOfOp) runs[op] = sinkSide[node];
    std::vector<int> dropped;
    for (int value : droppable_) {
      if (runs[graph_.values[value].op]) dropped.push_back(value);
    }
    Point point;
    point.edit = recomputation(graph_, block_, dropped, runs);
    point.bytes = bytes_;
    for (int value : point.edit.dropped) point.bytes -= bytesOf(value);
    for (int value : point.edit.added) point.bytes += bytesOf(value);
    for (int op : point.edit.ops) point.ticks += ticksOf(op);
    return point;
  }

  void add(const Point& point) {
    auto [known, isNew] = points_.try_emplace(point.bytes, point);
    if (!isNew && point.ticks < known->second.ticks) known->second = point;
  }

  // Those of the hull between two: `a` keeps more.
  void between(const Point& a, const Point& b) {
    if (a.bytes <= b.bytes || a.ticks >= b.ticks) return;
    const int64_t byteWeight = b.ticks - a.ticks, tickWeight = a.bytes - b.bytes;
    auto valueOf = [&](const Point& point) {
      return MinCut::Capacity(byteWeight) * point.bytes +
             MinCut::Capacity(tickWeight) * point.ticks;
    };
    const Point middle = solve(byteWeight, tickWeight);
    if (valueOf(middle) >= valueOf(a)) return;
    add(middle);
    between(a, middle);
    between(middle, b);
  }

  const StashGraph& graph_;
  int64_t block_;
  const std::vector<int>& shares_;
  std::vector<int> droppable_, ops_, leaves_;
  std::vector<int> times_;           // by op, that it runs if all that could leaves
  int64_t ticks_ = 0, bytes_ = 0;    // of all that could run, and of all that could leave
  std::map<int64_t, Point> points_;  // by bytes
};

}  // namespace

std::vector<BlockOption> blockOptions(const StashGraph& graph, int64_t block,
                                      const std::vector<int>& shares) {
  return OptionFinder(graph, block, shares).find();
}

std::vector<int> leafShares(const StashGraph& graph) {
  std::vector<int> shares(graph.values.size(), 0);
  for (int64_t block : blocksOf(graph)) {
    const std::vector<bool> any(graph.ops.size(), true);
    for (int value : recomputation(graph, block, droppable(graph, block), any).added) {
      ++shares[value];
    }
  }
  for (int& share : shares) share = std::max(share, 1);
  return shares;
}

}  // namespace oriel
