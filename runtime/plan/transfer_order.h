// One order of all that the programs of a plan send to each other.
//
// A message of NCCL holds up its stream, and may hold up all that is put on the rank's device
// behind it, until its peer's side runs. So each rank puts its messages, and its collectives, on
// its device in an order that is part of one order of all ranks. Then none waits for ever: take the
// first message or collective in this order that does not get done. On each of its ranks it is
// behind only what is done, and what was computed before it has waited for nothing else; so it runs
// on all of them, and is done.
//
// The order is that of the times in a run of the machine that proves a plan free of deadlocks: a
// process for each program goes through its schedule and
//
//  - before a run begins, waits until what it sent from the copies that the run uses is done;
//  - at a Send starts to send, and goes on. A send is done at the earliest when its receive is
//    posted, and that is when it counts as done here: so none of them needs a buffer in between;
//  - at a Receive waits until it has been sent. Receives are posted when their copies are free: at
//    the start of the step, or at the end of the last run before that used the copy.
//
// A process never has a choice, and what one waits for, nothing that another does takes away: once
// it may go on it may for good. In such a machine (a marked graph) every order of events ends in
// the same state, so one run that comes to its end proves that all do, whatever their timing.
//
// A process stands for all ranks of its grid. They run the same instructions, so a run of the
// machine is one of the ranks, in which those of a grid go on together: there a collective finds
// its whole group at the same place (its other conditions are checked in verify_collectives.cc), on
// a communication stream too, which needs nothing of other grids, so that no wait for one is held
// up; a receive finds all its parts sent once the whole other grid has sent, and a send all its
// receivers. Again every other order ends like this one.
//
// At the end of the step all receives have been posted, so every send is done or will be without
// anyone's help: steps, and runs of eval between them, can follow each other. In eval a receive may
// be posted late, when its segment begins; posts that are earlier let others only go on sooner.
//
// Before the update the hosts may meet, as for a dump of gradients, when their devices have done
// all before it. So what any rank waits for before the update comes before all else in the order,
// and has been put when the update begins: a time is a pair of which side of this it is on, and the
// machine's. (Where something before the update depends on what is behind it, they may not meet.)
#ifndef ORIEL_RUNTIME_PLAN_TRANSFER_ORDER_H_
#define ORIEL_RUNTIME_PLAN_TRANSFER_ORDER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/plan/plan.pb.h"

namespace oriel::runtime {

class Problems;

struct TransferOrder {
  // A Send or Receive in one run of its segment.
  struct Message {
    int segment;
    int instruction;
    int64_t microbatch;

    friend bool operator==(const Message& a, const Message& b) {
      return a.segment == b.segment && a.instruction == b.instruction &&
             a.microbatch == b.microbatch;
    }
  };
  // A run passes these points one after the other: before it waits for what was sent, when it
  // begins, each of its Sends (when it has been made ready) and Receives (before it is waited for),
  // and its end (when receives that are free then have been posted).
  struct Run {
    int segment;
    int64_t microbatch;
    int first_point;
  };
  struct Program {
    std::vector<Run> runs;
    std::vector<Message> messages;  // sent and received, in the order in which they are put
    // [point]: so many of them have been put when the program has passed it. At the last point all.
    // What is put is ready: its Send has been reached, or its receive posted.
    std::vector<int> put;
  };
  std::vector<Program> programs;  // of the plan
};

// Of a training step, or of an evaluation (the eval segments, in the order of their stages). Of a
// verified plan; InvalidArgument if it is not.
absl::StatusOr<TransferOrder> OrderTransfers(const plan::Plan& plan, bool eval);

// Part of the verifier; nothing if there is a problem, as ranks that would wait for ever.
std::optional<TransferOrder> OrderTransfers(const plan::Plan& plan, bool eval, Problems& problems);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_PLAN_TRANSFER_ORDER_H_
