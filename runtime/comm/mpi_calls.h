// What the MPI communicator and its messages share: the status of a call and the end of the job.
#ifndef ORIEL_RUNTIME_COMM_MPI_CALLS_H_
#define ORIEL_RUNTIME_COMM_MPI_CALLS_H_

#include <mpi.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace oriel::runtime {

// Aborted with the call's name and MPI's text, or OK.
absl::Status MpiStatus(int code, const char* call);

#define ORIEL_MPI(function, ...) MpiStatus(function(__VA_ARGS__), #function)

// MPI_Finalize has been called: nothing of MPI may be used any more.
bool MpiFinalized();

// What errors call each rank of MPI_COMM_WORLD; at first by its number. Before other threads use
// MPI.
void NameMpiRanks(std::vector<int64_t> names);
int64_t NameOfMpiRank(int world_rank);

// Says on stderr that this rank ends the job and why, and ends it.
void EndMpiJob(std::string_view reason);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_COMM_MPI_CALLS_H_
