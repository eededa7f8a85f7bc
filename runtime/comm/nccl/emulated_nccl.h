// NCCL on the emulated driver's devices: ranks are threads, or whatever makes streams go on.
//
// An operation waits on its stream until all ranks' streams have come to theirs, as NCCL's kernels
// do; a send until its receive runs. It begins when all that was put on its device before has
// begun, on whatever stream, and when what its communicator had to do before is done: so ranks that
// put operations in different orders wait for each other for ever. Sums are in rank order, with the
// host's arithmetic, so that results can be compared bit by bit. Stricter than NCCL: memory must be
// the device's, and ranks that are in different operations get an error where NCCL would hang.
#ifndef ORIEL_RUNTIME_COMM_NCCL_EMULATED_NCCL_H_
#define ORIEL_RUNTIME_COMM_NCCL_EMULATED_NCCL_H_

#include <nccl.h>

#include "runtime/comm/nccl/nccl_library.h"

namespace oriel::runtime {

// The same table on every call.
const Nccl& EmulatedNccl();

// All communicators of this process in which the caller's device is rank `rank`, now and until it
// is called with ncclSuccess, have this asynchronous error.
void SetEmulatedNcclError(int rank, ncclResult_t error);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_COMM_NCCL_EMULATED_NCCL_H_
