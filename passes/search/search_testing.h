// A cluster and a training for tests of the search.
#ifndef ORIEL_PASSES_SEARCH_SEARCH_TESTING_H_
#define ORIEL_PASSES_SEARCH_SEARCH_TESTING_H_

#include <cstdint>

#include "passes/cost/cluster.h"
#include "passes/search/space.h"

namespace oriel {

inline constexpr int64_t kGiB = int64_t{1} << 30;

// Nodes of devices of 16 GiB, with fast links within a node and slow ones between nodes.
inline Cluster TwoLevelCluster(int64_t nodes, int64_t devices) {
  Cluster cluster;
  cluster.nodes = nodes;
  cluster.devicesPerNode = devices;
  cluster.device.memory = 16 * kGiB;
  LinkLevel fast;
  fast.devices = devices;
  fast.bandwidth = 400e9;
  LinkLevel slow = fast;
  slow.devices = nodes * devices;
  slow.bandwidth = 10e9;
  cluster.links = {fast, slow};
  return cluster;
}

// A batch of 32 on such a cluster.
inline SearchProblem ProblemOn(int64_t nodes, int64_t devices) {
  SearchProblem problem;
  problem.cluster = TwoLevelCluster(nodes, devices);
  problem.ranks = nodes * devices;
  problem.globalBatch = 32;
  problem.parts = 8;
  return problem;
}

}  // namespace oriel

#endif  // ORIEL_PASSES_SEARCH_SEARCH_TESTING_H_
