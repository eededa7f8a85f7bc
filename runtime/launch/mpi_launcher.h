// Starts the ranks of a job as processes under mpirun, and watches over them.
#ifndef ORIEL_RUNTIME_LAUNCH_MPI_LAUNCHER_H_
#define ORIEL_RUNTIME_LAUNCH_MPI_LAUNCHER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/launch/options.h"

namespace oriel::runtime {

// Runs `mpirun -n RANKS this_executable ARGUMENTS...` to its end and returns the exit status.
// When a rank fails or is killed, the others are ended and stderr says which and why. A first
// Ctrl-C lets the ranks finish their step; a second kills them.
int LaunchMpi(int64_t ranks, const std::vector<std::string>& arguments, const RunOptions& options);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_LAUNCH_MPI_LAUNCHER_H_
