// One rank of a job, in a process that torchrun, a Kubernetes operator, a script or our own
// launcher has started.
#ifndef ORIEL_RUNTIME_LAUNCH_TCP_RANK_H_
#define ORIEL_RUNTIME_LAUNCH_TCP_RANK_H_

#include "runtime/launch/options.h"

namespace oriel::runtime {

// Runs the rank that RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT describe
// (comm/tcp/environment.h) to its end and returns the exit status. On an error all ranks end, and
// each says why: to the launcher, which tells it once, or on stderr.
int RunTcpRank(const RunOptions& options);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_LAUNCH_TCP_RANK_H_
