#include "passes/remat/stash_graph.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

namespace oriel {

int StashGraph::addValue(int64_t bytes) {
  values.push_back({kNone, bytes, false, false, {}, {}});
  return static_cast<int>(values.size()) - 1;
}

int StashGraph::addOp(Op op) {
  const int index = static_cast<int>(ops.size());
  for (int result : op.results) values[result].op = index;
  for (int operand : op.operands) {
    std::vector<int>& users = values[operand].users;
    if (users.empty() || users.back() != index) users.push_back(index);
  }
  ops.push_back(std::move(op));
  return index;
}

double Recomputation::seconds(const StashGraph& graph) const {
  const std::vector<int> times = timesAgain(graph, *this);
  double sum = 0;
  for (int op : ops) sum += times[op] * graph.ops[op].seconds;
  return sum;
}

std::vector<int> timesAgain(const StashGraph& graph, const Recomputation& edit) {
  const std::set<int> kept(edit.added.begin(), edit.added.end());
  const std::set<int> dropped(edit.dropped.begin(), edit.dropped.end());
  auto isAtHand = [&](int value) {
    const StashGraph::Value& node = graph.values[value];
    return kept.count(value) > 0 || ((node.stashed || node.pinned) && dropped.count(value) == 0);
  };
  const std::set<int> mayRun(edit.ops.begin(), edit.ops.end());
  std::map<int, std::set<int>> needed;  // ops by the segment that needs them
  for (int value : edit.dropped) {
    const StashGraph::Value& node = graph.values[value];
    for (int reader : node.readers) needed[reader].insert(node.op);
    if (node.readers.empty()) needed[0].insert(node.op);
  }
  std::vector<int> times(graph.ops.size());
  for (auto& [reader, ops] : needed) {
    // Users before operands: those are added in front of where it is.
    for (auto op = edit.ops.rbegin(); op != edit.ops.rend(); ++op) {
      if (ops.count(*op) == 0) continue;
      ++times[*op];
      for (int operand : graph.ops[*op].operands) {
        const int producer = graph.values[operand].op;
        if (mayRun.count(producer) > 0 && !isAtHand(operand)) ops.insert(producer);
      }
    }
  }
  return times;
}

int64_t Recomputation::savedBytes(const StashGraph& graph) const {
  int64_t sum = 0;
  for (int value : dropped) sum += graph.values[value].bytes;
  for (int value : added) sum -= graph.values[value].bytes;
  return sum;
}

std::vector<int64_t> blocksOf(const StashGraph& graph) {
  std::set<int64_t> blocks;
  for (const StashGraph::Op& op : graph.ops) blocks.insert(op.block);
  blocks.erase(StashGraph::kNone);
  return {blocks.begin(), blocks.end()};
}

std::vector<int> droppable(const StashGraph& graph, int64_t block) {
  std::vector<int> values;
  auto isInBlock = [&](int op) { return op >= 0 && graph.ops[op].block == block; };
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const StashGraph::Value& value = graph.values[i];
    if (value.stashed && !value.pinned && isInBlock(value.op) &&
        std::all_of(value.users.begin(), value.users.end(), isInBlock)) {
      values.push_back(static_cast<int>(i));
    }
  }
  return values;
}

Recomputation recomputation(const StashGraph& graph, int64_t block, std::vector<int> dropped,
                            const std::vector<bool>& mayRun) {
  const std::set<int> isDropped(dropped.begin(), dropped.end());
  std::set<int> ops, added;
  bool breaksCluster = false;
  // `user`: the op that runs again and reads the value.
  std::function<void(int, int)> need = [&](int index, int user) {
    const StashGraph::Value& value = graph.values[index];
    if (value.op == StashGraph::kNone) return;
    if ((value.stashed || value.pinned) && !isDropped.count(index)) return;
    const StashGraph::Op& op = graph.ops[value.op];
    if (!op.repeats || (!op.isFree && (op.block != block || !mayRun[value.op]))) {
      const int64_t cluster = user == StashGraph::kNone ? user : graph.ops[user].cluster;
      breaksCluster |= op.cluster != StashGraph::kNone && op.cluster == cluster;
      added.insert(index);
      return;
    }
    if (!ops.insert(value.op).second) return;
    for (int operand : op.operands) need(operand, value.op);
  };
  for (int value : dropped) need(value, StashGraph::kNone);
  Recomputation result{std::move(dropped), {added.begin(), added.end()}, {ops.begin(), ops.end()}};
  return breaksCluster ? Recomputation() : result;
}

namespace {

Recomputation ifItSaves(const StashGraph& graph, Recomputation edit) {
  return edit.savedBytes(graph) > 0 ? std::move(edit) : Recomputation();
}

// By op: whether it is on a way from one contraction of activations to another; the second one is
// not.
std::vector<bool> betweenContractions(const StashGraph& graph, int64_t block) {
  const size_t count = graph.ops.size();
  auto isPassable = [&](int index) {
    const StashGraph::Op& op = graph.ops[index];
    return op.block == block && op.repeats && !op.isCollective && !op.projects;
  };
  // Of ops in the order of the graph: what comes from a contraction, itself included.
  std::vector<bool> comes(count), leads(count), between(count);
  for (size_t i = 0; i < count; ++i) {
    if (!isPassable(static_cast<int>(i))) continue;
    const StashGraph::Op& op = graph.ops[i];
    comes[i] = op.contracts;
    for (int operand : op.operands) {
      const int producer = graph.values[operand].op;
      if (producer >= 0 && comes[producer]) comes[i] = true;
    }
  }
  for (size_t i = count; i-- > 0;) {
    for (int result : graph.ops[i].results) {
      for (int user : graph.values[result].users) {
        if (isPassable(user) && (graph.ops[user].contracts || leads[user])) leads[i] = true;
      }
    }
    between[i] = comes[i] && leads[i];
  }
  return between;
}

}  // namespace

Recomputation fullRecomputation(const StashGraph& graph, int64_t block) {
  const std::vector<bool> any(graph.ops.size(), true);
  return ifItSaves(graph, recomputation(graph, block, droppable(graph, block), any));
}

Recomputation selectiveRecomputation(const StashGraph& graph, int64_t block) {
  const std::vector<bool> between = betweenContractions(graph, block);
  std::vector<int> dropped;
  for (int value : droppable(graph, block)) {
    if (between[graph.values[value].op]) dropped.push_back(value);
  }
  return ifItSaves(graph, recomputation(graph, block, std::move(dropped), between));
}

}  // namespace oriel
