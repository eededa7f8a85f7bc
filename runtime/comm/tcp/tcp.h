// Ranks as processes that are connected by TCP: no MPI is needed to start them.
#ifndef ORIEL_RUNTIME_COMM_TCP_TCP_H_
#define ORIEL_RUNTIME_COMM_TCP_TCP_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/tcp/environment.h"

namespace oriel::runtime {

// The communicator of all ranks of the job that `environment` describes. Collective over them. The
// errors are those of ConnectRanks.
//
// Reductions have the bits of the other host communicators. A rank that destroys the communicator
// has left; one that is killed, or whose machine or network fails, is lost: then the calls of all
// ranks return Aborted, and name it. Abort reaches all ranks.
absl::StatusOr<std::unique_ptr<Communicator>> OpenTcpWorld(const LaunchEnvironment& environment);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_COMM_TCP_TCP_H_
