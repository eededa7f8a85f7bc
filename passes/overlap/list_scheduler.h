// The order of a segment's ops when collectives run beside them.
//
//   // Gathers what the last op needs; computes, and reduces what it makes.
//   std::vector<OverlapOp> ops = {{{}, 1e-3, /*stream=*/1}, {{}, 1e-3}, {{1}, 1e-3, 1}, {{0},
//   1e-3}}; scheduleOverlap(ops, bounds).steps;  // start 0, run 1, start 2, wait 0, run 3, wait 2
#ifndef ORIEL_PASSES_OVERLAP_LIST_SCHEDULER_H_
#define ORIEL_PASSES_OVERLAP_LIST_SCHEDULER_H_

#include <cstdint>
#include <vector>

namespace oriel {

// An op, or several collectives that travel as one.
struct OverlapOp {
  // Whose results it takes, or which it may not pass, by their places. They may stand behind it
  // where collectives of several places have become one.
  std::vector<int> operands;
  double seconds = 0;
  int stream = 0;       // of a collective, from 1 on; 0: it computes
  int64_t bytes = 0;    // of a collective: memory that only its being on the way takes
  bool leaves = false;  // other ranks wait for what it sends
};

// Of what is on its way, in bytes.
struct OverlapBounds {
  // Collectives without operands, from a start ahead of their first use up to it.
  int64_t ahead = 0;
  // Other collectives, from their start to their wait.
  int64_t behind = 0;
};

struct OverlapStep {
  enum class Kind { kRun, kStart, kWait };
  Kind kind = Kind::kRun;
  int op = 0;

  friend bool operator==(const OverlapStep& a, const OverlapStep& b) {
    return a.kind == b.kind && a.op == b.op;
  }
};

struct OverlapSchedule {
  std::vector<OverlapStep> steps;
  double seconds = 0;  // from the first step to the end of the last
};

// A list schedule (Graham 1969) for one unit that computes, and one for each stream, which runs its
// collectives in the order of their starts. The priority of an op is the time from its begin to
// the end of the segment along the longest path of ops that take its results.
//
// A collective is started as soon as its operands are there, and waited for where its first user
// stands. One without operands is started when its stream gets idle, in the order of the first
// users, as long as it stays within the bound. What computes keeps its order; only an op that would
// wait for a collective steps back behind ops of a higher priority, until none is left, or until
// the bound asks to wait for the collective, the oldest first.
//
// Operands make no cycle. Each op runs once; each collective is started once and waited for once.
OverlapSchedule scheduleOverlap(const std::vector<OverlapOp>& ops, const OverlapBounds& bounds);

}  // namespace oriel

#endif  // ORIEL_PASSES_OVERLAP_LIST_SCHEDULER_H_
