// When a rank can get ready to receive what its training step needs.
#ifndef ORIEL_RUNTIME_EXEC_RECEIVE_SCHEDULE_H_
#define ORIEL_RUNTIME_EXEC_RECEIVE_SCHEDULE_H_

#include <cstdint>
#include <vector>

#include "runtime/plan/plan.pb.h"

namespace oriel::runtime {

// A Receive of a run in the program's schedule.
struct ScheduledReceive {
  int segment;  // index in the program
  int instruction;
  int64_t microbatch;

  friend bool operator==(const ScheduledReceive& a, const ScheduledReceive& b) {
    return a.segment == b.segment && a.instruction == b.instruction && a.microbatch == b.microbatch;
  }
};

// [i]: the receives whose copy of their buffer is free as soon as the first i runs of a step are
// done, in the order of the runs that they are for. A copy is free behind the last run before that
// used it, and at the start of the step if there is none. One element more than runs; empty if no
// run receives anything. Of a verified program.
std::vector<std::vector<ScheduledReceive>> ReceiveSchedule(const plan::Program& program);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_EXEC_RECEIVE_SCHEDULE_H_
