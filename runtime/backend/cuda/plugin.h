// What differs between the plugin for GPUs and the one for the emulator.
#ifndef ORIEL_RUNTIME_BACKEND_CUDA_PLUGIN_H_
#define ORIEL_RUNTIME_BACKEND_CUDA_PLUGIN_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/driver.h"
#include "runtime/comm/communicator.h"

namespace oriel::runtime {

// The driver whose devices the plugin opens. The same on every call; Unavailable where there is
// none, with what to do.
absl::StatusOr<const kernels::cuda::Driver*> PluginDriver();

// Between its devices, one of each rank of `host`; both outlive it. Collective.
absl::StatusOr<std::unique_ptr<Communicator>> PluginCommunicator(
    Communicator& host, const kernels::cuda::Device& device);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_BACKEND_CUDA_PLUGIN_H_
