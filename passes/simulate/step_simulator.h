// When the ranks of all programs do what in a step, by replay of their schedules.
//
// Ranks of one program run the same instructions on the same shapes, so one stands for all. A
// segment was replayed once (passes/cost/segment_time.h); here its pieces are run as the schedule
// says, and what one program sends another waits for.
#ifndef ORIEL_PASSES_SIMULATE_STEP_SIMULATOR_H_
#define ORIEL_PASSES_SIMULATE_STEP_SIMULATOR_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace oriel {

// What a rank does between two transfers, or a transfer.
struct SegmentPiece {
  enum class Kind { kRun, kSend, kReceive };
  Kind kind = Kind::kRun;
  double computing = 0;  // seconds; of a run
  double waiting = 0;    // for collectives, beyond that
  std::string channel;   // of a transfer: one program sends, one receives, first in first out
  size_t peer = 0;       // the program that has the other end
  double bytes = 0;      // that a rank sends

  double seconds() const { return computing + waiting; }
};

struct ScheduledRun {
  std::string segment;
  int64_t microbatch = 0;
};

struct ProgramProfile {
  std::string name;
  int64_t firstRank = 0;
  std::map<std::string, std::vector<SegmentPiece>> segments;
  std::vector<ScheduledRun> schedule;
  double slowdown = 1;  // of its computing: the slowest of its ranks
};

struct TimedSegment {
  ScheduledRun run;
  double start = 0, end = 0;  // seconds from the start of the step
  // Between those, when it waits for other programs: from, to.
  std::vector<std::pair<double, double>> waits = {};
};

struct ProgramTimeline {
  std::vector<TimedSegment> runs;
  double computing = 0;      // seconds of the step
  double communicating = 0;  // waiting for collectives, with nothing to compute
  double waiting = 0;        // for other programs, until the last of them has ended
};

struct StepTimeline {
  std::vector<ProgramTimeline> programs;  // as given
  double seconds = 0;                     // until the last program has ended

  // The part of the step that even the busiest program waits for others.
  double bubble() const;
};

// Seconds from the start of a transfer of `bytes` from a rank of one program to one of another
// (numbers as in `programs`) until it is there. A link carries one transfer at a time.
using TransferSeconds = std::function<double(size_t from, size_t to, double bytes)>;

// FailedPrecondition if programs wait for each other for ever, or for what nobody sends; NotFound
// for a segment that is not there.
absl::StatusOr<StepTimeline> simulateStep(const std::vector<ProgramProfile>& programs,
                                          const TransferSeconds& transferSeconds);

}  // namespace oriel

#endif  // ORIEL_PASSES_SIMULATE_STEP_SIMULATOR_H_
