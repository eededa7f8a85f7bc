// The CUDA backend, which is a plugin beside the executable: oriel-run starts without a driver, and
// without the time and memory that CUDA's libraries take.
#ifndef ORIEL_RUNTIME_BACKEND_CUDA_PLUGIN_H_
#define ORIEL_RUNTIME_BACKEND_CUDA_PLUGIN_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/backend/backend.h"

namespace oriel::runtime {

// Device `ordinal` of this machine. Unavailable, with what is missing and what to do, if there is
// no plugin, no driver or no device.
absl::StatusOr<std::unique_ptr<Backend>> OpenCudaBackend(int ordinal);

// How many devices the driver shows this process. Unavailable as above.
absl::StatusOr<int> CountCudaDevices();

// What the plugin finds on this machine (runtime/backend/cuda/describe.h), as JSON. Unavailable
// only if there is no plugin.
absl::StatusOr<std::string> DescribeCuda();

// Where the plugin is looked for: liboriel_cuda.so beside the executable, or the file that
// ORIEL_CUDA_PLUGIN names.
absl::StatusOr<std::string> CudaPluginPath();

// What the plugin defines (runtime/backend/cuda/plugin.cc, describe.cc). Of a null pointer the
// status says why.
extern "C" {
using OpenCudaBackendEntry = Backend* (*)(int ordinal, absl::Status* status);
using CountCudaDevicesEntry = int (*)(absl::Status* status);
using DescribeCudaEntry = void (*)(std::string* json);
}

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_BACKEND_CUDA_PLUGIN_H_
