#include "runtime/backend/cuda/plugin.h"

#ifdef ORIEL_HAVE_NCCL
#include "runtime/comm/nccl/cuda_communicator.h"
#else
#include "runtime/comm/nccl/staged.h"
#endif

namespace oriel::runtime {

absl::StatusOr<const kernels::cuda::Driver*> PluginDriver() {
  return kernels::cuda::SystemDriver();
}

absl::StatusOr<std::unique_ptr<Communicator>> PluginCommunicator(
    Communicator& host, const kernels::cuda::Device& device) {
#ifdef ORIEL_HAVE_NCCL
  return OpenCudaCommunicator(host, device);
#else
  return OpenStagedWorld(host, device);
#endif
}

}  // namespace oriel::runtime
