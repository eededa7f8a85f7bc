// One rank of a job, in a process that mpirun has started.
#ifndef ORIEL_RUNTIME_LAUNCH_MPI_RANK_H_
#define ORIEL_RUNTIME_LAUNCH_MPI_RANK_H_

#include <cstdint>
#include <optional>

#include "runtime/launch/options.h"

namespace oriel::runtime {

// Ranks of the job that this process belongs to, as mpirun or srun says by the environment; none
// if neither has started it.
std::optional<int64_t> MpiWorldSize();
// Whether it was mpirun, or another launcher of MPI alone: srun also starts what is no rank of MPI,
// with the variables of some PMI.
bool IsStartedByMpirun();

// Runs the rank to its end and returns the exit status. On an error all ranks end.
int RunMpiRank(const RunOptions& options);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_LAUNCH_MPI_RANK_H_
