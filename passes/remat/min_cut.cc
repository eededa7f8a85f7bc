#include "passes/remat/min_cut.h"

#include <algorithm>
#include <deque>

namespace oriel {

namespace {

constexpr int kNotReached = -1, kStart = -2;

}  // namespace

int MinCut::addNode() {
  edgesOf_.emplace_back();
  return nodes() - 1;
}

void MinCut::add(int from, int to, Capacity capacity) {
  edgesOf_[from].push_back(static_cast<int>(edges_.size()));
  edges_.push_back({to, capacity});
  edgesOf_[to].push_back(static_cast<int>(edges_.size()));
  edges_.push_back({from, 0});
}

std::vector<int> MinCut::reach(int source) const {
  std::vector<int> by(nodes(), kNotReached);
  by[source] = kStart;
  std::deque<int> next = {source};
  while (!next.empty()) {
    const int node = next.front();
    next.pop_front();
    for (int index : edgesOf_[node]) {
      const Edge& edge = edges_[index];
      if (edge.left == 0 || by[edge.to] != kNotReached) continue;
      by[edge.to] = index;
      next.push_back(edge.to);
    }
  }
  return by;
}

std::vector<bool> MinCut::sinkSide(int source, int sink) {
  std::vector<int> by = reach(source);
  while (by[sink] != kNotReached) {
    Capacity flow = unlimited();
    for (int node = sink; node != source; node = edges_[by[node] ^ 1].to) {
      flow = std::min(flow, edges_[by[node]].left);
    }
    for (int node = sink; node != source; node = edges_[by[node] ^ 1].to) {
      edges_[by[node]].left -= flow;
      edges_[by[node] ^ 1].left += flow;
    }
    by = reach(source);
  }
  std::vector<bool> side(by.size());
  for (size_t i = 0; i < by.size(); ++i) side[i] = by[i] == kNotReached;
  return side;
}

}  // namespace oriel
