// Proves before a plan runs that its programs are well-formed, cannot corrupt memory, and compute
// on pieces what the rules of their kernels say of wholes.
#ifndef ORIEL_RUNTIME_PLAN_VERIFY_H_
#define ORIEL_RUNTIME_PLAN_VERIFY_H_

#include "absl/status/status.h"
#include "runtime/plan/plan.pb.h"

namespace oriel::runtime {

// InvalidArgument that lists what is wrong, one problem a line, up to 20; each names program,
// segment and instruction. Takes any message, whatever bytes it came from. Checked are:
//
//  - tables: grids and programs cover each rank once, names are unique and resolve, tensors have
//    a known type and a size that fits a machine, files are plain names, batch sizes multiply up;
//  - programs: indices in range, buffers inside the arena at multiples of 64, constants with all
//    their bytes, local shapes that follow from global shape and sharding, parameters and optimizer
//    states that are sharded as the tables say, inputs that are all split by samples over the
//    data-parallel ranks, schedules that run each microbatch once, collectives and slices over axes
//    in the grid's order, whose results have the shapes that follow from the size of the group;
//    of pipeline stages, that each is run by one program, and each channel has its two ends;
//  - memory: nothing is read before it is written, or after other data has taken its place. Two
//    buffers with the same offset and size are one storage (a view, or an update in place); a
//    parameter, optimizer state, gradient, accumulator, input, scalar or constant keeps its
//    memory for itself, and so does what is transferred or has several copies; a stash, or what has
//    been received, holds in its copy while runs of its microbatch read it, along the whole
//    schedule; an output holds to the end of its segment; what moves pieces between
//    ranks or takes one has its result apart from its operand. What is read lies over the ranks as
//    the buffer says by which it is read (shape, cuts, pending sums, scale), unless it is zero or a
//    constant; each segment leaves what is kept as it found it;
//  - sharding: operands and results of a launch are cut as the axes cut the factors of its rule;
//    pending sums pass through it only where it is linear in all that is pending and nothing else
//    is, and those that it makes are reduced later: a collective reduces what is pending, joins
//    what is cut, slices what is the same on its ranks. A scale goes with linearity;
//  - training: a trainable parameter is written once, in update, a frozen one never; the schedule
//    adds to gradients, and update resets them and the accumulators that it adds to, once it has
//    used them;
//  - collectives: programs of one grid have the same ones in the same order;
//  - transfers: what one grid sends is what the other receives, at the same scale and of the same
//    microbatches in the same order; no copy is written while it is sent, or used before what goes
//    there has been received; no ranks wait for each other for ever, whatever their speed and
//    however long a send waits for its receive.
absl::Status VerifyPlan(const plan::Plan& plan);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_PLAN_VERIFY_H_
