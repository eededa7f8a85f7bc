// When the copies of values are in use, as a schedule runs its segments.
//
// The ticks of storage.h have each segment once. A schedule runs them for one microbatch after the
// other while others are in flight, so that a copy is in use in runs of segments that have nothing
// to do with it. This clock has a span for each run.
#ifndef ORIEL_PASSES_LOWER_COPY_CLOCK_H_
#define ORIEL_PASSES_LOWER_COPY_CLOCK_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "passes/lower/arena_planner.h"
#include "passes/lower/storage.h"

namespace oriel {

// A run of the schedule: the segment's number and the microbatch.
using SegmentRun = std::pair<size_t, int64_t>;

class CopyClock {
 public:
  // `begins`: the first tick of each segment, and the end of the last one.
  CopyClock(std::vector<int64_t> begins, std::vector<SegmentRun> runs);

  // Spans of ticks (`beside`) and of this clock (`among`) for each copy of a value of one
  // microbatch: microbatch m has copy m modulo their number, and no two of them one at a time.
  std::vector<ArenaCopy> copiesOf(const Storage& storage) const;

  // Microbatches that a segment runs for.
  int64_t microbatchesOf(size_t segment) const {
    return static_cast<int64_t>(runsOf_[segment].size());
  }
  int64_t microbatches() const;  // the most of any segment
  // After how many microbatches the order of runs repeats itself, in the middle of the schedule; 1
  // where it does not.
  int64_t period() const;
  // The most that are in flight at a time; one counts for each segment that has begun it by writing
  // one of these values, until the last of them has been read.
  int64_t mostInFlight(const std::vector<const Storage*>& stash) const;

  // The runs, in order, and the tick of this clock at which each begins; a tick of a segment is as
  // far behind it as behind the segment's first tick.
  struct Run {
    size_t segment;
    int64_t microbatch;
    int64_t begin;
  };
  const std::vector<Run>& runs() const { return runs_; }
  // Those of a segment; the end is not one of them.
  TimeSpan ticksOf(size_t segment) const { return {begins_[segment], begins_[segment + 1] - 1}; }
  int64_t end() const { return end_; }

 private:
  // The first and the last run of a microbatch that use a value, -1 if none do; and the segments
  // that run in between.
  struct Stay {
    int64_t first = -1, last = -1;
    std::vector<size_t> between;
  };
  // Of each microbatch. Values that the same segments use stay for the same runs.
  const std::vector<Stay>& staysOf(const Storage& storage) const;

  std::vector<int64_t> begins_;
  std::vector<Run> runs_;
  int64_t end_ = 0;
  std::vector<std::vector<int64_t>> runsOf_;                        // of each segment
  mutable std::map<std::vector<size_t>, std::vector<Stay>> stays_;  // by segments
};

}  // namespace oriel

#endif  // ORIEL_PASSES_LOWER_COPY_CLOCK_H_
