#include "runtime/backend/cuda/plugin.h"

#ifdef ORIEL_HAVE_NCCL
#include "runtime/comm/nccl/cuda_communicator.h"
#else
#include <cstdlib>

#include "absl/strings/string_view.h"
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
  const char* kind = std::getenv("ORIEL_DEVICE_COMM");
  if (kind != nullptr && absl::string_view(kind) == "nccl") {
    return absl::UnavailableError(
        "ORIEL_DEVICE_COMM is nccl, but this Oriel was built without nccl.h; build it where CMake "
        "finds NCCL's headers, or set staged");
  }
  return OpenStagedWorld(host, device);
#endif
}

}  // namespace oriel::runtime
