#include "passes/stage/layer_order.h"

#include <algorithm>
#include <set>
#include <utility>

namespace oriel {

namespace {

using Graph = std::vector<std::vector<int>>;

Graph usersOf(const Graph& operands) {
  Graph users(operands.size());
  for (size_t op = 0; op < operands.size(); ++op) {
    for (int operand : operands[op]) users[operand].push_back(static_cast<int>(op));
  }
  return users;
}

// Operands once, those at the end of the longest chain first.
Graph longestFirst(Graph operands) {
  std::vector<int> depth(operands.size(), 0);
  for (size_t op = 0; op < operands.size(); ++op) {
    for (int operand : operands[op]) depth[op] = std::max(depth[op], depth[operand] + 1);
    std::stable_sort(operands[op].begin(), operands[op].end(),
                     [&](int a, int b) { return depth[a] > depth[b]; });
  }
  return operands;
}

// From each op that no other reads, operands first.
std::vector<int> depthFirst(const Graph& operands, const Graph& users) {
  std::vector<int> order;
  std::vector<bool> seen(operands.size(), false);
  std::vector<std::pair<int, size_t>> stack;  // op, operands visited
  for (size_t root = 0; root < operands.size(); ++root) {
    if (!users[root].empty()) continue;
    seen[root] = true;
    stack.emplace_back(static_cast<int>(root), 0);
    while (!stack.empty()) {
      auto& [op, next] = stack.back();
      if (next == operands[op].size()) {
        order.push_back(op);
        stack.pop_back();
        continue;
      }
      const int operand = operands[op][next++];
      if (seen[operand]) continue;
      seen[operand] = true;
      stack.emplace_back(operand, 0);
    }
  }
  return order;
}

// Moves ops down to what reads them.
class Sinker {
 public:
  Sinker(const Graph& operands, const Graph& users, std::vector<int>* order)
      : operands_(operands), users_(users), order_(*order), place_(order->size()) {
    number(0, static_cast<int>(order_.size()));
  }

  void sinkAll() {
    for (int i = static_cast<int>(order_.size()) - 1; i >= 0; --i) {
      const int target = targetOf(i);
      if (target <= i + 1) continue;
      const std::set<int> group = groupOf(order_[i], target);
      if (group.empty()) continue;
      int begin = i;
      for (int op : group) begin = std::min(begin, place_[op]);
      std::stable_partition(order_.begin() + begin, order_.begin() + target,
                            [&](int op) { return group.count(op) == 0; });
      number(begin, target);
    }
  }

 private:
  void number(int begin, int end) {
    for (int i = begin; i < end; ++i) place_[order_[i]] = i;
  }

  // Where it would be right in front of its first reader, and of the chains of those operands that
  // the reader reads behind it.
  int targetOf(int i) const {
    const int op = order_[i];
    if (users_[op].empty()) return i + 1;
    int target = static_cast<int>(order_.size());
    for (int user : users_[op]) target = std::min(target, place_[user]);
    const std::vector<int>& read = operands_[order_[target]];
    const auto own = std::find(read.begin(), read.end(), op);
    std::set<int> skipped;
    for (; target > i + 1; --target) {
      const int before = order_[target - 1];
      const bool isReadBehind = std::find(own, read.end(), before) != read.end();
      if (!isReadBehind && !areIn(users_[before], skipped)) break;
      skipped.insert(before);
    }
    return target;
  }

  static bool areIn(const std::vector<int>& ops, const std::set<int>& set) {
    return std::all_of(ops.begin(), ops.end(), [&](int op) { return set.count(op) > 0; });
  }

  // The op, and the chain of ops in front that it alone reads, up to values that are read at the
  // target or behind it, so that moving the ops makes none of them live longer. Empty if the
  // chain begins elsewhere.
  std::set<int> groupOf(int op, int target) const {
    constexpr size_t kLongest = 64;
    std::set<int> group;
    std::vector<int> left = {op};
    while (!left.empty()) {
      const int next = left.back();
      left.pop_back();
      if (!group.insert(next).second) continue;
      if (group.size() > kLongest || (operands_[next].empty() && next != op)) return {};
      for (int operand : operands_[next]) {
        const bool isReadLater = std::any_of(users_[operand].begin(), users_[operand].end(),
                                             [&](int user) { return place_[user] >= target; });
        if (isReadLater || group.count(operand) > 0) continue;
        if (!areIn(users_[operand], group)) return {};
        left.push_back(operand);
      }
    }
    return group;
  }

  const Graph& operands_;
  const Graph& users_;
  std::vector<int>& order_;
  std::vector<int> place_;
};

}  // namespace

std::vector<int> layerOrder(const Graph& operands) {
  const Graph users = usersOf(operands);
  std::vector<int> order = depthFirst(longestFirst(operands), users);
  Sinker(operands, users, &order).sinkAll();
  return order;
}

}  // namespace oriel
