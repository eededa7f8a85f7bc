// Which communicator a CUDA backend uses.
#ifndef ORIEL_RUNTIME_COMM_NCCL_CUDA_COMMUNICATOR_H_
#define ORIEL_RUNTIME_COMM_NCCL_CUDA_COMMUNICATOR_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "kernels/cuda/device.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/nccl/nccl_library.h"

namespace oriel::runtime {

// NCCL, or what the environment says:
//
//   ORIEL_DEVICE_COMM=nccl|staged   staged: through pinned memory and the host's communicator, for
//                                   several ranks on one GPU
//   ORIEL_NCCL_TIMEOUT=SECONDS      in which a collective ends (default 600)
//
// Collective; equal on all ranks. Unavailable where there is no NCCL, InvalidArgument for another
// value. `load` is asked for NCCL where it is used.
using NcclLoader = std::function<absl::StatusOr<const Nccl*>()>;
absl::StatusOr<std::unique_ptr<Communicator>> OpenCudaCommunicator(
    Communicator& host, const kernels::cuda::Device& device, const NcclLoader& load = SystemNccl);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_COMM_NCCL_CUDA_COMMUNICATOR_H_
