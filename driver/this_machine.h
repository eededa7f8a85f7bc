// The machine at hand as a cluster: what a strategy is searched for where nobody says which
// machines it is for.
#ifndef ORIEL_DRIVER_THIS_MACHINE_H_
#define ORIEL_DRIVER_THIS_MACHINE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "passes/cost/cluster.h"
#include "runtime/doctor/machine.h"

namespace oriel::driver {

struct ThisMachine {
  Cluster cluster;      // one node, a device for each rank
  std::string device;   // "core", or the GPUs' name
  int64_t devices = 0;  // that there are, for more ranks or fewer
  std::string ratesOf;  // the known cluster that has them

  // What it was taken to be, with so much memory for a rank, and where better rates come from: a
  // line of a report.
  std::string text(int64_t memory) const;
  // The same as the first line of a strategy that was searched for it.
  std::string comment(int64_t memory) const;
};

// For plans of a kind of device (runtime/plan/device.h) and so many ranks; without a number, one
// for each core or GPU. The same machine gives the same cluster, whatever runs on it meanwhile.
// Unavailable, FailedPrecondition or InvalidArgument where there is nothing to go by; the remedy in
// the message is --cluster.
absl::StatusOr<ThisMachine> thisMachine(const std::string& deviceKind,
                                        std::optional<int64_t> ranks);

// Parts of it, for tests.

// The preset `cpu`, of whose cores a rank has as many as `oriel-run` gives it threads. Where there
// are more ranks than cores, each has its share of a core: everything takes as many times as long.
absl::StatusOr<ThisMachine> hostMachine(int64_t cores, int64_t memory, int64_t ranks);

// The preset with this sort of device.
absl::StatusOr<ThisMachine> cudaMachine(const std::vector<runtime::CudaDevice>& devices,
                                        std::optional<int64_t> ranks);

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_THIS_MACHINE_H_
