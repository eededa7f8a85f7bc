// Ranks as MPI processes. Built as a plugin: reach it through factory.h.
#ifndef ORIEL_RUNTIME_COMM_MPI_H_
#define ORIEL_RUNTIME_COMM_MPI_H_

#include "absl/status/status.h"
#include "runtime/comm/communicator.h"

// Opens the world. Null, with the reason in `status`, on failure.
extern "C" oriel::runtime::Communicator* OrielOpenMpiWorld(absl::Status* status);

#endif  // ORIEL_RUNTIME_COMM_MPI_H_
