// Places blocks with known lifetimes in one arena.
//
//   std::vector<ArenaBlock> blocks = {{0, 3, 256}, {2, 5, 64}, {4, 6, 256}};
//   ArenaLayout layout = planArena(blocks);   // blocks 0 and 2 share their bytes
#ifndef ORIEL_PASSES_LOWER_ARENA_PLANNER_H_
#define ORIEL_PASSES_LOWER_ARENA_PLANNER_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace oriel {

// Every offset is a multiple of this, which is a cache line and the widest vector.
inline constexpr int64_t kArenaAlignment = 64;

// From `begin` to `end`, both included.
struct TimeSpan {
  int64_t begin = 0;
  int64_t end = 0;
};

// When one of several copies of a value, which take turns, is in use: never, if there is no span.
struct ArenaCopy {
  std::vector<TimeSpan> beside;  // for blocks that are no copies; in order, apart
  std::vector<TimeSpan> among;   // the same for other copies, on a clock of their own
};

// Bytes that are in use from instruction `begin` to instruction `end`, both included.
struct ArenaBlock {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t bytes = 0;
  // Others may use them meanwhile; both included. None if it ends before it begins.
  int64_t gapBegin = 0;
  int64_t gapEnd = -1;
  // Holds a value that one segment hands to another.
  bool isStash = false;
  // A copy is in use when this says so, not when the block does.
  std::optional<ArenaCopy> copy = std::nullopt;
};

struct ArenaLayout {
  std::vector<int64_t> offsets;  // of each block
  int64_t bytes = 0;             // of the arena
  int64_t lowerBound = 0;        // largest sum of (aligned) bytes in use at once
  int64_t steps = 0;             // work: how often a block has been compared with another
};

// When most is in use.
struct ArenaPeak {
  int64_t bytes = 0;  // aligned; no arena is smaller
  int64_t time = 0;   // the first such
};
ArenaPeak peakOf(const std::vector<ArenaBlock>& blocks);

// When to look for nothing better.
struct ArenaEffort {
  std::optional<int64_t> lowerBound = std::nullopt;  // where blocks are copies, that of all
  int64_t enough = 0;                                // an arena of so many bytes is as good as any
  int64_t steps = std::numeric_limits<int64_t>::max();  // no order is tried behind so many
};

// Blocks that are in use at the same time get disjoint ranges. Greedy: one block after the other,
// each at the lowest offset that is free over its lifetime (Pisarchyk and Lee 2020, algorithm 2),
// in several orders, of which the best counts: by size; by lifetime; those of the peak first, as a
// stack; the stash first. Deterministic. An order takes at most half the square of the number of
// blocks in steps.
ArenaLayout planArena(const std::vector<ArenaBlock>& blocks, const ArenaEffort& effort = {});

}  // namespace oriel

#endif  // ORIEL_PASSES_LOWER_ARENA_PLANNER_H_
