#include "passes/stage/layer_order.h"

#include <algorithm>
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

// Moves ops down whose operands are live there anyway.
void sink(const Graph& operands, const Graph& users, std::vector<int>* order) {
  std::vector<int> place(order->size());
  for (size_t i = 0; i < order->size(); ++i) place[(*order)[i]] = static_cast<int>(i);
  for (int i = static_cast<int>(order->size()) - 1; i >= 0; --i) {
    const int op = (*order)[i];
    if (users[op].empty()) continue;
    int target = static_cast<int>(order->size());
    for (int user : users[op]) target = std::min(target, place[user]);
    auto isReadLater = [&](int operand) {
      return std::any_of(users[operand].begin(), users[operand].end(),
                         [&](int user) { return place[user] >= target; });
    };
    if (target == i + 1 || !std::all_of(operands[op].begin(), operands[op].end(), isReadLater)) {
      continue;
    }
    std::rotate(order->begin() + i, order->begin() + i + 1, order->begin() + target);
    for (int moved = i; moved < target; ++moved) place[(*order)[moved]] = moved;
  }
}

}  // namespace

std::vector<int> layerOrder(const Graph& operands) {
  const Graph users = usersOf(operands);
  std::vector<int> order = depthFirst(longestFirst(operands), users);
  sink(operands, users, &order);
  return order;
}

}  // namespace oriel
