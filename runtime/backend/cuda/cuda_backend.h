// A CUDA device as a backend.
#ifndef ORIEL_RUNTIME_BACKEND_CUDA_CUDA_BACKEND_H_
#define ORIEL_RUNTIME_BACKEND_CUDA_CUDA_BACKEND_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/driver.h"
#include "runtime/backend/backend.h"

namespace oriel::runtime {

// What prepares a launch; cuda::Registry::Get() outside of tests.
using CudaPrepare = std::function<absl::StatusOr<kernels::KernelFn>(const kernels::KernelSpec&,
                                                                    kernels::cuda::Device&)>;
// What Backend::OpenCommunicator does.
using CudaCommunicate = std::function<absl::StatusOr<std::unique_ptr<Communicator>>(
    Communicator& host_world, kernels::cuda::Device&)>;

// Device `ordinal` of the driver's, which outlives the backend. The computing stream is one of its
// own. Errors as Device::Open's.
absl::StatusOr<std::unique_ptr<Backend>> MakeCudaBackend(const kernels::cuda::Driver& driver,
                                                         int ordinal, CudaPrepare prepare,
                                                         CudaCommunicate communicate = nullptr);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_BACKEND_CUDA_CUDA_BACKEND_H_
