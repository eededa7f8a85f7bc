// Which bytes of a program's arena are needed from when to when: its schedule is followed, and what
// each instruction writes in each run is a value that is needed up to its last reader. Knows
// nothing of what the compiler had in mind.
#ifndef ORIEL_RUNTIME_PLAN_LIFETIMES_H_
#define ORIEL_RUNTIME_PLAN_LIFETIMES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/plan/plan.pb.h"

namespace oriel::runtime {

// Bytes [begin, end) of the arena.
struct ByteRange {
  int64_t begin = 0;
  int64_t end = 0;
  friend bool operator==(const ByteRange& a, const ByteRange& b) {
    return a.begin == b.begin && a.end == b.end;
  }
};

// A run of a segment. Each has its times: `start` before its first instruction, then one for each
// instruction, and `finish` behind the last one, when the host reads outputs.
struct RunTimes {
  int segment = 0;
  int64_t microbatch = 0;
  int64_t start = 0;
  int64_t finish = 0;

  int64_t TimeOf(int instruction) const { return start + 1 + instruction; }
};

// What an instruction writes. From `begin` to `end`, both included, its bytes are in use: up to the
// last reader, the Wait of a collective that has started to read or write it, the run before which
// a message is known to have left.
struct Life {
  int buffer = 0;
  ByteRange bytes;  // of the copy
  int run = 0;
  int instruction = 0;  // that writes it
  int64_t begin = 0;
  int64_t end = 0;
  // A collective or a receive has written it, or all that reads it are such.
  bool communication = false;
  // The last reader writes its result in its place: at `end` the bytes are that one's too.
  bool overwritten = false;
};

// Of a training step (several microbatches that do the same are one if no buffer has several
// copies), or of the segments that the schedule does not run. Values that stay from one to the
// next, in buffers of kinds that are persistent (plan_types.h), are no lives: but for transfers.
struct Lifetimes {
  std::vector<RunTimes> runs;
  std::vector<Life> lives;  // in the order in which they begin
};

// Of a verified program.
Lifetimes LifetimesOfStep(const plan::Program& program);
// Of each segment that the schedule does not run; the stages of eval run one behind the other.
std::vector<Lifetimes> LifetimesOfOthers(const plan::Program& program);

// Memory of values that stay from one step to the next, and of inputs; in order, disjoint.
std::vector<ByteRange> KeptRanges(const plan::Program& program);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_PLAN_LIFETIMES_H_
