// What a step of each program takes: time for the simulator, memory, floating-point operations.
#ifndef ORIEL_PASSES_SIMULATE_PROGRAM_PROFILE_H_
#define ORIEL_PASSES_SIMULATE_PROGRAM_PROFILE_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "mlir/IR/BuiltinOps.h"
#include "passes/lower/program_memory.h"
#include "passes/simulate/step_simulator.h"
#include "passes/strategy/strategy.h"

namespace oriel {

using MemoryBytes = std::array<double, kMemoryUses>;  // by MemoryUse
double sumOf(const MemoryBytes& bytes);

// Of an op: the segment's name, what it came from and what it is (all unique in a context), and
// which of those it is. The same in modules of one context where the op does the same.
using MemoryPlace = std::tuple<const void*, const void*, const void*, int>;

// What is in use where, of a program with one schedule.
using MemoryByPlace = std::map<MemoryPlace, MemoryBytes>;

// What a rank needs that runs a program by one schedule.
struct ScheduledMemory {
  MemoryByPlace byPlace;
  double cachedBytes = 0;  // that an allocator reserves, where the software stack has one
};

// What a run of a segment does on a rank.
struct SegmentWork {
  double flops = 0;                        // of products
  std::map<std::string, double> ofKernel;  // seconds, by the kernel's name; no collectives
};

struct ProgramCost {
  ProgramProfile profile;
  int64_t ranks = 1;
  std::map<std::string, SegmentWork> work;  // by segment
  MemoryBytes bytes = {};                   // of a rank at its peak
  double cachedBytes = 0;  // that an allocator reserves, where the software stack has one
  MemoryByPlace memory;
  // The same with the schedule of a grid that this program stands for, or with more microbatches,
  // by grid.
  std::map<int64_t, MemoryByPlace> memoryOn;
  std::map<int64_t, double> cachedBytesOn;

  double peakBytes() const;
  double flopsOfStep() const;  // of a rank
  // Likewise, in seconds; together what the program computes.
  std::map<std::string, double> kernelsOfStep() const;
};

// The stage at the end of a segment's name: 2 of "backward_input.2".
std::optional<int64_t> stageOfSegment(const std::string& segment);

// Of the programs of a module after `overlap`. Fails with a diagnostic for a program that can't be
// lowered, or has no good grid or schedule.
mlir::FailureOr<std::vector<ProgramCost>> programCosts(mlir::ModuleOp module);

// Of a program of such a module, if it ran this schedule.
mlir::FailureOr<ScheduledMemory> memoryWith(mlir::ModuleOp program,
                                            const std::vector<ScheduledRun>& runs);
// The most that is in use at a time; none if nothing is.
MemoryBytes peakOf(const MemoryByPlace& memory);

// Floating-point operations that a model FLOPs utilization counts, of a microbatch of all ranks: of
// @forward and @backward behind `train`, where nothing runs twice.
struct ModelFlops {
  std::vector<double> ofBlocks;  // as findParts() numbers them
  double ofRest = 0;
};
ModelFlops modelFlopsOfMicrobatch(mlir::ModuleOp module, const Strategy& strategy);

// `cost` and, for each of these, `times` the difference between another cost of the program, with
// one block more of a sort in some of its stages, and this one. A segment takes its own stage's
// times, if there are any (by the number at the end of its name). What is in use grows where it is
// used: its peak may be at another place with more blocks.
struct BlockDifference {
  const ProgramCost* withOneMore;
  double times = 0;  // what is of all stages of the program: memory, `update`
  std::map<int64_t, double> ofStage;
};
// None if the two differ in more than times and bytes.
std::optional<ProgramCost> extrapolate(const ProgramCost& cost,
                                       const std::vector<BlockDifference>& differences);

}  // namespace oriel

#endif  // ORIEL_PASSES_SIMULATE_PROGRAM_PROFILE_H_
