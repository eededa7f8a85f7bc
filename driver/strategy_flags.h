// The options of a command that say a strategy (strategy_options.h) and a cluster.
#ifndef ORIEL_DRIVER_STRATEGY_FLAGS_H_
#define ORIEL_DRIVER_STRATEGY_FLAGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "driver/strategy_options.h"
#include "passes/cost/cluster.h"

namespace oriel::driver {

// Both as long as the command lives. `worldAlone`: what `--world` without other options means.
void addStrategyFlags(CLI::App* command, StrategyOptions* strategy, const std::string& worldAlone);
// `--cluster`, with this said behind what it is.
CLI::Option* addClusterFlag(CLI::App* command, std::string* cluster, const std::string& use);

// `--fix`, the choices that a search is not to make.
void addFixFlag(CLI::App* command, std::vector<std::string>* fix);

// A file or a known name. InvalidArgument if the strategy has more ranks than the cluster devices.
absl::StatusOr<Cluster> clusterFor(const std::string& fileOrName, const Strategy& strategy);
// The same for a search on `--world` of its devices, or on all of them.
absl::StatusOr<Cluster> clusterForSearch(const std::string& fileOrName,
                                         std::optional<int64_t> world);

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_STRATEGY_FLAGS_H_
