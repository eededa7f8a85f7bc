// Communicators that come from outside this process.
#ifndef ORIEL_RUNTIME_COMM_FACTORY_H_
#define ORIEL_RUNTIME_COMM_FACTORY_H_

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/comm/communicator.h"

namespace oriel::runtime {

// The ranks that mpirun (or srun) has started; one rank when it was not used. Initialises MPI;
// once per process. The communicator finalises it, so it is destroyed last, and only after a
// clean run: after an error call Abort, which ends the job.
//
// MPI is in a plugin beside the executable (liboriel_comm_mpi.so). Unavailable, with what is
// missing, when the plugin or MPI itself cannot be loaded.
absl::StatusOr<std::unique_ptr<Communicator>> OpenMpiWorld();

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_COMM_FACTORY_H_
