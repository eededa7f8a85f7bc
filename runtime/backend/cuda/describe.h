// What a machine has of what CUDA plans need.
#ifndef ORIEL_RUNTIME_BACKEND_CUDA_DESCRIBE_H_
#define ORIEL_RUNTIME_BACKEND_CUDA_DESCRIBE_H_

#include <string>

#include "absl/status/statusor.h"
#include "kernels/cuda/driver.h"

namespace oriel::runtime {

// A JSON object:
//
//   "architectures": "sm_80, sm_90, sm_100"     of Oriel's kernels
//   "driver":        {"ok", "version": "13.0"} or {"ok", "problem"}
//   "devices":       [{"name", "architecture", "memory_bytes", "free_bytes"}]
//   "libraries":     [{"name": "cuBLASLt", "file", "needed_for", "ok", "version" or "problem"}]
//
// Of a driver that was not found, the status says why.
std::string DescribeCuda(const absl::StatusOr<const kernels::cuda::Driver*>& driver);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_BACKEND_CUDA_DESCRIBE_H_
