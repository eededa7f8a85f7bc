// A cluster file from what was measured on a machine (oriel doctor --measure).
#ifndef ORIEL_PASSES_COST_CALIBRATE_H_
#define ORIEL_PASSES_COST_CALIBRATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "passes/cost/cluster.h"
#include "passes/cost/efficiency.h"
#include "passes/cost/link_time.h"

namespace oriel {

// Seconds of one launch or call each, while all ranks do the same.
struct MachineMeasurements {
  int64_t ranks = 1;
  int64_t memory = 0;  // bytes of the machine
  struct Product {
    MatrixProduct product;
    double seconds;
  };
  struct Attention {
    AttentionWork work;
    double seconds;
  };
  struct Bytes {
    double bytes, seconds;  // read and written
  };
  struct Collective {
    LinkUse use;
    int64_t ranks;
    double sentBytes, seconds;
  };
  struct Overlap {
    double computing, communicating, both;  // each alone, and at the same time
  };
  std::vector<Product> products;
  std::vector<Attention> attention;
  std::vector<Bytes> bytes;
  std::vector<Collective> collectives;  // none for one rank
  std::vector<Overlap> overlaps;        // of collectives
};

// Lines of JSON, as oriel-run --measure prints them. InvalidArgument for others.
absl::StatusOr<MachineMeasurements> readMeasurements(const std::string& text);

// One node of as many devices as there were ranks, whose numbers make the least relative errors.
// InvalidArgument without a product of 32 bits or without bytes.
absl::StatusOr<Cluster> calibrate(const MachineMeasurements& measurements);

// What readClusterText() reads back.
std::string clusterText(const Cluster& cluster);

// The mean of |predicted / measured - 1| of each kind, for people.
std::string calibrationErrors(const Cluster& cluster, const MachineMeasurements& measurements);

}  // namespace oriel

#endif  // ORIEL_PASSES_COST_CALIBRATE_H_
