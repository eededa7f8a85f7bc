// How the processes of a job find each other without MPI.
//
// Rank 0 listens at the port that all know; the others connect to it, again and again until it is
// there, and say who they are and where they listen. When all have come, rank 0 tells everybody the
// addresses, and each rank connects to those below it. What goes wrong is one error on every rank
// that has come: who is missing, who came twice, who counts the ranks otherwise.
//
// Like MPI and NCCL, this trusts the network that it runs on.
#ifndef ORIEL_RUNTIME_COMM_TCP_RENDEZVOUS_H_
#define ORIEL_RUNTIME_COMM_TCP_RENDEZVOUS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/comm/tcp/environment.h"
#include "runtime/comm/tcp/sockets.h"

namespace oriel::runtime {

// A rank's connections to all others.
struct RankConnections {
  int64_t rank = 0;
  std::vector<Socket> sockets;         // by rank; this rank's is not open
  std::vector<std::string> addresses;  // by rank
};

// Collective. DeadlineExceeded names the ranks that have not come, and the variables to set;
// InvalidArgument if ranks contradict each other; AlreadyExists if rank 0's port is taken.
absl::StatusOr<RankConnections> ConnectRanks(const LaunchEnvironment& environment);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_COMM_TCP_RENDEZVOUS_H_
