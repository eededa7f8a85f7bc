// Collectives and messages on device memory through any communicator of the host.
//
// Everything goes through pinned memory, and the host waits: slow, but it works where NCCL does not
// (several ranks on one GPU, no NCCL), and gives the bits of the host's reductions.
#ifndef ORIEL_RUNTIME_COMM_NCCL_STAGED_H_
#define ORIEL_RUNTIME_COMM_NCCL_STAGED_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/cuda/device.h"
#include "runtime/comm/communicator.h"

namespace oriel::runtime {

// A communicator of the ranks of `host`, each with its device. Both outlive it, and its groups.
absl::StatusOr<std::unique_ptr<Communicator>> OpenStagedWorld(Communicator& host,
                                                              const kernels::cuda::Device& device);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_COMM_NCCL_STAGED_H_
