// What the MPI communicator and its messages share: the status of a call and the end of the job.
#ifndef ORIEL_RUNTIME_COMM_MPI_CALLS_H_
#define ORIEL_RUNTIME_COMM_MPI_CALLS_H_

#include <mpi.h>

#include <string_view>

#include "absl/status/status.h"

namespace oriel::runtime {

// Aborted with the call's name and MPI's text, or OK.
absl::Status MpiStatus(int code, const char* call);

#define ORIEL_MPI(function, ...) MpiStatus(function(__VA_ARGS__), #function)

// MPI_Finalize has been called: nothing of MPI may be used any more.
bool MpiFinalized();

// Says on stderr that this rank ends the job and why, and ends it.
void EndMpiJob(std::string_view reason);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_COMM_MPI_CALLS_H_
