// The machines that a plan is made for: devices, their memory and rates, and the links between them
// (docs/cluster.md).
#ifndef ORIEL_PASSES_COST_CLUSTER_H_
#define ORIEL_PASSES_COST_CLUSTER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "passes/cost/efficiency.h"

namespace oriel {

// Dense operations per second, at most; a multiply-add counts as two.
struct PeakRates {
  std::optional<double> bf16, f16, f32, f64;
};

struct ClusterDevice {
  std::string name;
  int64_t memory = 0;          // bytes that a rank may have: the device's less what is reserved
  int64_t reserved = 0;        // for contexts and libraries
  double memoryBandwidth = 0;  // bytes per second, reads and writes together
  PeakRates flops;
  Efficiency efficiency;  // what it reaches of all that

  DeviceRates rates() const;
};

// Devices are numbered through node by node. A level joins domains of as many consecutive devices.
struct LinkLevel {
  std::string name;
  int64_t devices = 0;          // of a domain: those of the level below, several times
  double bandwidth = 0;         // bytes per second of each device, each way
  double latency = 0;           // seconds from one device to another
  double oversubscription = 1;  // how often the devices' bandwidths go into what the level carries
  double reached = 0.8;         // share of the bandwidth that large messages reach
  double ramp = 0;              // seconds more that it takes to reach it
  double reduces = 0;  // share of the bandwidth at which switches take in what they sum; 0: don't
  bool ring = false;   // collectives take the steps of a ring, never of a tree
  double pair = 0;     // bytes per second between two devices, each way; 0: all of the bandwidth

  double usableBandwidth() const { return bandwidth / oversubscription; }
};

struct Cluster {
  std::string name;  // for messages
  int64_t nodes = 1;
  int64_t devicesPerNode = 1;
  ClusterDevice device;
  std::vector<LinkLevel> links;  // innermost first; the last joins all devices

  int64_t devices() const { return nodes * devicesPerNode; }
  // The same with other nodes, all of which the last level joins.
  Cluster withNodes(int64_t count) const;
};

// `name` stands for the file in messages. InvalidArgument, with line and column, for another text.
absl::StatusOr<Cluster> readClusterText(const std::string& text, const std::string& name);

// A file, or one that Oriel knows ("h100"), of its number of nodes or of another: "h100:4" has 4.
// NotFound for a file or a name that is not there.
absl::StatusOr<Cluster> findCluster(const std::string& fileOrName);

// What times are predicted for where no cluster is given: "h100", of as many nodes as there may be.
const Cluster& defaultCluster();

// The names that findCluster() knows, and the text that is behind one.
std::vector<std::string> clusterPresets();
std::optional<std::string> clusterPresetText(const std::string& name);

}  // namespace oriel

#endif  // ORIEL_PASSES_COST_CLUSTER_H_
