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
#include "passes/lower/copy_clock.h"
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

// Where storages lie.
struct MemoryLayout {
  std::vector<std::vector<int64_t>> offsets;  // of the copies of each storage
  int64_t bytes = 0;                          // of the arena
  int64_t lowerBound = 0;                     // the bytes of the peak
  int64_t steps = 0;                          // work, as in arena_planner.h
};

// What is in use while an op of a segment runs, in the run of the segment in which that is most.
struct MemoryAtOp {
  mlir::Operation* op;
  std::array<int64_t, kMemoryUses> bytesOf = {};  // by MemoryUse
};

// A value in use, in the time of the schedule: a tick for each op of each run of a segment.
struct MemoryStay {
  StorageId storage;
  int64_t bytes = 0;  // of one copy
  TimeSpan span;
};

class ProgramMemory {
 public:
  // Of a program with local shapes whose ops are kernels, collectives, .. (after partition). Fails
  // with a diagnostic for a segment that can't be lowered.
  static mlir::FailureOr<ProgramMemory> of(mlir::ModuleOp program,
                                           int64_t alignment = kArenaAlignment);

  const StorageAssignment& assignment() const { return assignment_; }
  llvm::ArrayRef<mlir::func::FuncOp> segments() const { return segments_; }
  MemoryUse useOf(StorageId storage) const;
  // Of all copies, aligned.
  int64_t bytesOf(StorageId storage) const;
  // The arena has at least the bytes of its peak, and is near it.
  MemoryPeak peak() const;
  // Of the segments that it was made of, in the order of their ops. The largest is the peak.
  std::vector<MemoryAtOp> atOps() const;
  // Of a step of training: what does not persist, each time that it is in use, by when that begins.
  std::vector<MemoryStay> stays() const;
  // Offsets of all storages. What persists comes first, gradients side by side, then the bytes that
  // are shared by lifetime: each copy by when the schedule has it in use. May give stash values and
  // temporaries more copies. Looks for nothing better than an arena of `enough` bytes.
  MemoryLayout place(int64_t enough = 0);

 private:
  // How many copies values have.
  struct Copies {
    int64_t stash;
    int64_t temporaries;
  };

  // Whether the schedule says when its copies are in use.
  bool isOnClock(const Storage& storage) const;
  // Bytes in use at each tick (with one more behind the last), but for what is on the clock.
  std::vector<int64_t> bytesByTick() const;

  // Numbers of copies of the stash to try, besides the fewest; `most` is the most that a value of
  // it needs.
  std::vector<int64_t> copiesToTry(int64_t most) const;
  // Returns how many all storages have.
  int64_t setCopies(const Copies& copies);
  // Looks for nothing better behind so many steps.
  MemoryLayout placeAll(int64_t enough, int64_t steps) const;

  StorageAssignment assignment_;
  std::vector<mlir::func::FuncOp> segments_;
  std::vector<bool> isScheduled_;    // of each segment; all where there is no schedule
  std::vector<int64_t> fewest_;      // copies of each storage that it needs
  std::optional<CopyClock> clock_;   // where several microbatches are in flight
  std::vector<bool> communication_;  // of each storage
};

}  // namespace oriel

#endif  // ORIEL_PASSES_LOWER_PROGRAM_MEMORY_H_
