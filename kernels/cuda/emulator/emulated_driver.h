// A CUDA driver whose devices are the CPU, for tests and for machines without a GPU.
//
//   EmulatorOptions options;
//   options.devices = 2;
//   const Driver& driver = EmulatedDriver(options);
//   ORIEL_ASSIGN_OR_RETURN(std::unique_ptr<Device> device, Device::Open(driver, /*ordinal=*/1));
//
// It is stricter than a GPU, so that what works by chance there fails here:
// - Nothing that is put on a stream runs before the host waits for it, or frees memory; then the
//   streams' operations run in an order drawn from a seed, of all that events allow. Sometimes as
//   late, sometimes as early as possible.
// - A fresh allocation holds 0xff bytes (NaN in every float type). Copies and fills are checked
//   against the allocations' bounds, and bytes written beyond an allocation's end are found when it
//   is freed, and when the host waits for the device.
// - While a stream is captured, calls that would end the capture on a GPU are refused.
//
// An error of an operation stays with its device, as on a GPU: each later call there returns it.
// EmulatorError says in words what it was.
#ifndef ORIEL_KERNELS_CUDA_EMULATOR_EMULATED_DRIVER_H_
#define ORIEL_KERNELS_CUDA_EMULATOR_EMULATED_DRIVER_H_

#include <cuda.h>

#include <cstdint>
#include <functional>
#include <string>

#include "kernels/cuda/driver.h"

namespace oriel::kernels::cuda {

struct EmulatorOptions {
  int devices = 1;
  uint64_t seed = 0;  // of the order of operations; each device draws for itself
  int64_t memory_bytes = int64_t{4} << 30;  // of a device
  int major = 9, minor = 0;                 // compute capability
};

// The table, the same on every call. The options hold for devices that are opened behind it: to be
// called while none is open.
const Driver& EmulatedDriver(const EmulatorOptions& options = {});

// What the last failing call of this thread found, in words; for messages.
std::string EmulatorError();

// An operation of a library that works on streams (cuBLASLt, NCCL), as emulated. It runs when its
// stream comes to it; CUDA_ERROR_NOT_READY: it waits for something, a peer for instance, and is
// called again, with `first` false, while other streams go on. Else it is done, with that result.
// What it reads of host memory it has copied. In a graph it runs again and again, each time anew
// with `first`.
using EmulatedOperation = std::function<CUresult(bool first)>;
// Puts it on the stream, or into the graph that is captured of it. `name` is for messages.
CUresult EnqueueEmulated(CUstream stream, std::string name, EmulatedOperation operation);

// Whether a range lies within one allocation of the current device. For such libraries.
bool IsEmulatedMemory(const void* address, int64_t bytes);

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_CUDA_EMULATOR_EMULATED_DRIVER_H_
