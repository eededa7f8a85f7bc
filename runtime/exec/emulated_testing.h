// Emulated CUDA devices whose kernels are the host's, for tests of the executor.
#ifndef ORIEL_RUNTIME_EXEC_EMULATED_TESTING_H_
#define ORIEL_RUNTIME_EXEC_EMULATED_TESTING_H_

#include <cstdint>

#include "kernels/cuda/driver.h"
#include "runtime/backend/cuda/cuda_backend.h"

namespace oriel::runtime {

// For kEmulatedDevices devices. Their order of operations is drawn from ORIEL_CUDA_EMULATOR_SEED.
inline constexpr int kEmulatedDevices = 2;
const kernels::cuda::Driver& TestDriver();

// Puts the host's kernel on the stream, as a launch. "test_fail" reports its index as device code
// does.
absl::StatusOr<kernels::KernelFn> PrepareHostKernel(const kernels::KernelSpec& spec,
                                                    kernels::cuda::Device& device);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_EXEC_EMULATED_TESTING_H_
