// What this machine's cores, memory and communicator do: what the compiler's cost model is
// calibrated with (passes/cost/calibrate.h, docs/cost_model.md).
#ifndef ORIEL_RUNTIME_MEASURE_MEASURE_H_
#define ORIEL_RUNTIME_MEASURE_MEASURE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/comm/communicator.h"

namespace oriel::runtime {

// Seconds of one launch or call, with what it was of.
struct Measurement {
  std::string what;  // "product", "attention", "bytes", "all_reduce", "all_gather", "transfer",
                     // "overlap"
  std::vector<std::pair<std::string, double>> numbers;  // "seconds" last
};

// Of kernels, one after the other: products and attention by shape, sums of two tensors by size.
// All ranks of `world` (null: one) run each at the same time, with so many threads each; a
// measurement is the shortest of a rank's runs, of the slowest rank. The same on every rank.
// Errors are those of kernels and of the communicator.
absl::StatusOr<std::vector<Measurement>> MeasureKernels(int threads, Communicator* world);

// Of collectives and messages by size, in groups of 2, 4, .. ranks, where those divide them all,
// and in one of all. Every group is made of neighbours and all are busy. Last, "overlap":
// collectives of all ranks beside products ("seconds"), and what each take alone ("computing",
// "communicating"). Empty for one rank; the same on every rank.
absl::StatusOr<std::vector<Measurement>> MeasureCollectives(Communicator* world);

// {"measure": "product", "rows": 64, .., "seconds": 1.2e-05}
std::string MeasurementJson(const Measurement& measurement);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_MEASURE_MEASURE_H_
