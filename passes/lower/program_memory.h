// The memory of a rank that runs a program, before the program is lowered: what its values take,
// and when most of it is in use.
//
//   mlir::FailureOr<ProgramMemory> memory = ProgramMemory::of(program);
//   memory->peak().bytes;    // no arena is smaller; cheap
//   memory->place().bytes;   // of the arena that the plan will have
#ifndef ORIEL_PASSES_LOWER_PROGRAM_MEMORY_H_
#define ORIEL_PASSES_LOWER_PROGRAM_MEMORY_H_

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "mlir/IR/BuiltinOps.h"
#include "passes/lower/arena_planner.h"
#include "passes/lower/stash_clock.h"
#include "passes/lower/storage.h"

namespace oriel {

enum class MemoryUse {
  kParameters,
  kGradients,
  kOptimizerState,
  kStash,          // of all microbatches in flight
  kTemporaries,    // and outputs
  kCommunication,  // transfers, results of collectives, and what is made for collectives only
  kOther,          // inputs, constants, sums
};
inline constexpr size_t kMemoryUses = 7;

// The instant at which most is in use.
struct MemoryPeak {
  int64_t bytes = 0;                              // each value's a multiple of kArenaAlignment
  std::array<int64_t, kMemoryUses> bytesOf = {};  // by MemoryUse: the parts of `bytes`
  std::vector<StorageId> inUse;                   // the largest first
  int64_t tick = 0;                               // as in storage.h

  int64_t of(MemoryUse use) const { return bytesOf[static_cast<size_t>(use)]; }
};

class ProgramMemory {
 public:
  // Of a program with local shapes whose ops are kernels, collectives, .. (after partition). Fails
  // with a diagnostic for a segment that can't be lowered.
  static mlir::FailureOr<ProgramMemory> of(mlir::ModuleOp program);

  const StorageAssignment& assignment() const { return assignment_; }
  MemoryUse useOf(StorageId storage) const;
  // Of all copies, aligned.
  int64_t bytesOf(StorageId storage) const;
  // The arena has at least the bytes of its peak, and is near it.
  MemoryPeak peak() const;
  // Offsets of all storages. What persists comes first, gradients side by side, then the bytes that
  // are shared by lifetime: copies of the stash by when the schedule has them in use.
  // May give stash values more copies.
  ArenaLayout place();

 private:
  // Whether it is a stash value whose copies the schedule says when they are in use.
  bool isOnClock(const Storage& storage) const;
  // Bytes in use at each tick (with one more behind the last), but for what is on the clock.
  std::vector<int64_t> bytesByTick() const;

  void makeClock();
  ArenaLayout placeAll() const;

  StorageAssignment assignment_;
  // Where several microbatches are in flight: first ticks of segments, runs of the schedule.
  std::vector<int64_t> begins_;
  std::vector<SegmentRun> runs_;
  std::optional<StashClock> clock_;
  std::vector<bool> communication_;  // of each storage
};

}  // namespace oriel

#endif  // ORIEL_PASSES_LOWER_PROGRAM_MEMORY_H_
