// Minimum cuts of small directed graphs.
//
//   MinCut graph(3);
//   graph.add(0, 1, 5), graph.add(1, 2, 3);
//   graph.sinkSide(0, 2);  // {false, false, true}: the edge 1 -> 2 is cut
#ifndef ORIEL_PASSES_REMAT_MIN_CUT_H_
#define ORIEL_PASSES_REMAT_MIN_CUT_H_

#include <vector>

#include "absl/numeric/int128.h"

namespace oriel {

class MinCut {
 public:
  using Capacity = absl::int128;
  // Of edges that are not to be cut.
  static Capacity unlimited() { return Capacity(1) << 120; }

  explicit MinCut(int nodes) : edgesOf_(nodes) {}

  int nodes() const { return static_cast<int>(edgesOf_.size()); }
  int addNode();
  void add(int from, int to, Capacity capacity);
  // Of each node whether it is on the sink's side of the cut that is nearest to the source. To be
  // called once. By augmenting paths, the shortest first (Edmonds and Karp 1972).
  std::vector<bool> sinkSide(int source, int sink);

 private:
  struct Edge {
    int to;
    Capacity left;  // the reverse edge is the next one, or the one before
  };

  // The edge by which each node is reached from the source, -1 for those that are not.
  std::vector<int> reach(int source) const;

  std::vector<Edge> edges_;
  std::vector<std::vector<int>> edgesOf_;  // by node
};

}  // namespace oriel

#endif  // ORIEL_PASSES_REMAT_MIN_CUT_H_
