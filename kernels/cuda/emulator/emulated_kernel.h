// Device functions that the emulated driver launches, by name.
//
// What ORIEL_CUDA_KERNEL (device_code.cuh) defines for the host's compiler registers itself before
// main():
//
//   static const EmulatedKernelRegistrar registrar({"oriel_scale_f32", 256, sizes, &RunScale});
#ifndef ORIEL_KERNELS_CUDA_EMULATOR_EMULATED_KERNEL_H_
#define ORIEL_KERNELS_CUDA_EMULATOR_EMULATED_KERNEL_H_

#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "kernels/cuda/device.h"

namespace oriel::kernels::cuda {

// One launch. Its limits are checked: at most 1024 threads in a block, and what the kernel allows.
struct EmulatedLaunch {
  Grid blocks;
  Grid threads;
  unsigned shared_bytes = 0;  // dynamic
};

struct EmulatedKernel {
  const char* name = nullptr;
  unsigned max_threads = 1024;  // of a block
  // Bytes of each parameter: a launch copies the arguments, for it may run much later.
  std::vector<size_t> parameter_bytes;
  // Runs all blocks, to their end. `args` as cuLaunchKernel has them: the address of each argument.
  // In whichever thread drives the stream; in several at a time, for several devices. What a GPU
  // refuses, or hangs on, is an error that says which block and why (block.h).
  std::function<absl::Status(const EmulatedLaunch& launch, void** args)> run;
};

// Null if there is none of the name.
const EmulatedKernel* FindEmulated(std::string_view name);

struct EmulatedKernelRegistrar {
  explicit EmulatedKernelRegistrar(EmulatedKernel kernel);
};

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_CUDA_EMULATOR_EMULATED_KERNEL_H_
