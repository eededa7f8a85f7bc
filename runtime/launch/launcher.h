// Starts the ranks of a job as processes of this machine, and watches over them.
#ifndef ORIEL_RUNTIME_LAUNCH_LAUNCHER_H_
#define ORIEL_RUNTIME_LAUNCH_LAUNCHER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/launch/options.h"

namespace oriel::runtime {

// Both run ranks to their end and return the exit status. When a rank fails or is killed, the
// others are ended and stderr says which and why. A first Ctrl-C lets the ranks finish their step;
// a second kills them.

// `mpirun -n RANKS this_executable ARGUMENTS...`
int LaunchMpi(int64_t ranks, const std::vector<std::string>& arguments, const RunOptions& options);

// `this_executable ARGUMENTS...` for each rank, with the variables that torchrun would set, so that
// they meet over TCP.
int LaunchProcesses(int64_t ranks, const std::vector<std::string>& arguments,
                    const RunOptions& options);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_LAUNCH_LAUNCHER_H_
