// Ranks as threads of one process.
#ifndef ORIEL_RUNTIME_COMM_IN_PROCESS_H_
#define ORIEL_RUNTIME_COMM_IN_PROCESS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/comm/communicator.h"

namespace oriel::runtime {

// The communicators of all ranks of a new world of `size` >= 1; the caller gives each to a thread
// of its own. Ranks may exceed cores: who waits sleeps.
//
// A rank that destroys its communicator has left: collectives and messages that still need it
// return Aborted on the others. Peers read and write a rank's buffers only while that rank is
// inside the collective, or has not destroyed the message, even when it is aborted. Ranks that
// disagree on the collective they are in all get Aborted, with a message that names two of them.
//
// A message is copied once, from the sender's memory to the receiver's, by the side that waits
// first when both have started it. Who waits for one that the peer has given up gets Aborted.
std::vector<std::unique_ptr<Communicator>> MakeInProcessWorld(int64_t size);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_COMM_IN_PROCESS_H_
