// Measures the machine by the program that trains on it, and makes a cluster file of that.
#ifndef ORIEL_DRIVER_MEASURE_H_
#define ORIEL_DRIVER_MEASURE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace oriel::driver {

// What a program prints to stdout; its stderr goes to ours. The error says how it ended.
absl::StatusOr<std::string> outputOf(const std::vector<std::string>& command);

// Runs oriel-run --measure, which stands beside this program, with more arguments, and writes what
// it found to the cluster file. Says on stdout how well the cost model fits the measurements.
absl::Status measureCluster(const std::string& file, const std::vector<std::string>& arguments);

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_MEASURE_H_
