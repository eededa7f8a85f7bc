// When the copies of stash values are in use, as a schedule runs its segments.
//
// The ticks of storage.h have each segment once. A schedule runs them for one microbatch after the
// other while others are in flight, so that a copy is in use in runs of segments that have nothing
// to do with it. This clock has a span for each run; runs in which all copies are in the same state
// count once.
#ifndef ORIEL_PASSES_LOWER_STASH_CLOCK_H_
#define ORIEL_PASSES_LOWER_STASH_CLOCK_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "passes/lower/arena_planner.h"
#include "passes/lower/storage.h"

namespace oriel {

// A run of the schedule: the segment's number and the microbatch.
using SegmentRun = std::pair<size_t, int64_t>;

class StashClock {
 public:
  // `begins`: the first tick of each segment, and the end of the last one. `stash` are values that
  // have copies, with their uses in segments and the number of copies: microbatch m has copy m
  // modulo that, and no two microbatches a copy at the same time.
  StashClock(std::vector<int64_t> begins, const std::vector<SegmentRun>& runs,
             const std::vector<const Storage*>& stash);

  // Spans of ticks (`beside`) and of this clock (`among`) for each copy of one of `stash`.
  std::vector<ArenaCopy> copiesOf(const Storage& storage) const;

  // The runs that this clock has, in order, and the tick of this clock at which each begins; a tick
  // of a segment is as far behind it as behind the segment's first tick.
  struct Run {
    size_t segment;
    int64_t begin;
  };
  const std::vector<Run>& runs() const { return kept_; }
  // Those of a segment; the end is not one of them.
  std::pair<int64_t, int64_t> ticksOf(size_t segment) const {
    return {begins_[segment], begins_[segment + 1]};
  }
  int64_t end() const { return end_; }

 private:
  // Values that the same segments use and that have as many copies stay for the same runs.
  using Kind = std::pair<std::vector<size_t>, int64_t>;
  static Kind kindOf(const Storage& storage);
  // The first and the last run of a microbatch that use a value; -1: none do.
  struct Stay {
    int64_t first = -1, last = -1;
  };
  static std::vector<Stay> staysOf(const std::vector<SegmentRun>& runs, const Kind& kind);
  // That a copy is in use in a run of this clock.
  struct Presence {
    size_t run, copy;
    bool isFirst, isLast;
  };

  std::vector<int64_t> begins_;
  std::vector<Run> kept_;
  std::map<Kind, std::vector<Presence>> presences_;  // by run
  int64_t end_ = 0;
};

}  // namespace oriel

#endif  // ORIEL_PASSES_LOWER_STASH_CLOCK_H_
