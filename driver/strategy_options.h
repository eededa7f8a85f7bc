// `--strategy FILE`, or its shorthand `--mesh dp=2,tp=2 --zero 1 --sp --stages 4`, or `--world N`.
#ifndef ORIEL_DRIVER_STRATEGY_OPTIONS_H_
#define ORIEL_DRIVER_STRATEGY_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "passes/strategy/strategy.h"

namespace oriel::driver {

struct StrategyOptions {
  std::string file;
  std::vector<std::string> mesh;  // each AXIS=N
  std::optional<int64_t> zero, hsdp;
  bool sequenceParallel = false, padding = false;
  std::vector<std::string> stages;  // "4" or "auto 4"; or what is in each: "vision", "llm"
  std::string schedule, balance, placement, memory, remat;
  std::optional<int64_t> interleave, microbatches;
  std::vector<std::string> overlap;  // "on", "off", or sizes: "bucket=25MiB", "prefetch=50MiB"
  // Ranks; without a mesh it is the size of dp (of each grid), else what the meshes must have.
  std::optional<int64_t> world;
  MemoryFrom memoryFrom = MemoryFrom::kStrategy;
};

// Those that are given, as on the command line: "--mesh".
std::vector<std::string> givenOptions(const StrategyOptions& options);

// Whether they leave the strategy to a search: nothing is said but the number of ranks and what a
// rank has.
bool isLeftToSearch(const StrategyOptions& options);

// Reads the file, or makes the strategy (and its text) that a file with the same values would give;
// one rank without any option. InvalidArgument, naming the option, for one that is malformed or
// contradicts another.
absl::StatusOr<Strategy> strategyFromOptions(const StrategyOptions& options);

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_STRATEGY_OPTIONS_H_
