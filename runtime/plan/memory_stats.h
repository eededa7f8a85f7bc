// What the memory of a program's ranks is for at the instant at which they need most.
#ifndef ORIEL_RUNTIME_PLAN_MEMORY_STATS_H_
#define ORIEL_RUNTIME_PLAN_MEMORY_STATS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/plan/plan.pb.h"

namespace oriel::runtime {

// Parts of a peak. Bytes of a value are rounded up to a multiple of 64, for so values lie.
enum class MemoryPart {
  kParameters,
  kGradients,
  kOptimizerState,
  kStash,          // values that a segment hands to a later one, of all microbatches in flight
  kTemporaries,    // values of one segment, and outputs
  kCommunication,  // transfers; of temporaries those that collectives write, or alone read
  kOther,          // inputs, constants, sums, scalars
};
inline constexpr int kMemoryParts = 7;
// "parameters", "optimizer_state", ..
std::string MemoryPartName(MemoryPart part);

// A value, all its copies, that is in use at the peak.
struct MemoryHolder {
  MemoryPart part = MemoryPart::kOther;
  int64_t bytes = 0;
  int64_t copies = 1;
  std::string name;  // of the parameter; else "node [module]" of what makes it, or the op
};

// What a segment hands on for one microbatch, and for how many at the same time.
struct StashStats {
  std::string segment;  // that writes it
  int64_t bytes = 0;    // of one microbatch
  int64_t microbatches = 0;
};

struct MemoryStats {
  int64_t arena_bytes = 0;
  // The most that is in use at a time, by following the schedule: no arena is smaller.
  int64_t peak_bytes = 0;
  std::map<MemoryPart, int64_t> parts;  // of peak_bytes
  // The most that parameters, gradients and optimizer state take at a time.
  int64_t state_bytes = 0;
  // When that is: before, in or behind an instruction of this run. Empty without a run.
  std::string segment;
  int64_t microbatch = 0;
  int64_t instruction = 0;
  std::vector<MemoryHolder> holders;  // the largest first
  std::vector<StashStats> stash;      // in the order of the segments
};

// Of a verified program.
MemoryStats ComputeMemoryStats(const plan::Program& program);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_PLAN_MEMORY_STATS_H_
