// The CUDA driver, as a table of functions.
//
// libcuda.so.1 belongs to the driver of the machine: a binary that links it does not start where
// there is none. So it is loaded when a device is asked for, and everything above takes a table:
// the emulator (emulator/emulated_driver.h) fills one with functions that run on the CPU, and tests
// one with functions that fail.
#ifndef ORIEL_KERNELS_CUDA_DRIVER_H_
#define ORIEL_KERNELS_CUDA_DRIVER_H_

#include <cuda.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace oriel::kernels::cuda {

// Every function of libcuda that Oriel calls.
#define ORIEL_CUDA_DRIVER_FUNCTIONS(F) \
  F(cuInit)                            \
  F(cuDriverGetVersion)                \
  F(cuGetErrorName)                    \
  F(cuGetErrorString)                  \
  F(cuDeviceGetCount)                  \
  F(cuDeviceGet)                       \
  F(cuDeviceGetName)                   \
  F(cuDeviceGetAttribute)              \
  F(cuDeviceTotalMem)                  \
  F(cuDevicePrimaryCtxRetain)          \
  F(cuDevicePrimaryCtxRelease)         \
  F(cuCtxSetCurrent)                   \
  F(cuMemGetInfo)                      \
  F(cuMemAlloc)                        \
  F(cuMemFree)                         \
  F(cuMemAllocHost)                    \
  F(cuMemFreeHost)                     \
  F(cuMemcpyAsync)                     \
  F(cuMemcpy2DAsync)                   \
  F(cuMemsetD8Async)                   \
  F(cuStreamCreateWithPriority)        \
  F(cuStreamDestroy)                   \
  F(cuStreamSynchronize)               \
  F(cuStreamWaitEvent)                 \
  F(cuStreamBeginCapture)              \
  F(cuStreamIsCapturing)               \
  F(cuStreamEndCapture)                \
  F(cuGraphInstantiate)                \
  F(cuGraphLaunch)                     \
  F(cuGraphExecDestroy)                \
  F(cuGraphDestroy)                    \
  F(cuEventCreate)                     \
  F(cuEventDestroy)                    \
  F(cuEventRecord)                     \
  F(cuEventQuery)                      \
  F(cuEventSynchronize)                \
  F(cuEventElapsedTime)                \
  F(cuModuleLoadData)                  \
  F(cuModuleUnload)                    \
  F(cuModuleGetFunction)               \
  F(cuFuncLoad)                        \
  F(cuFuncSetAttribute)                \
  F(cuFuncGetAttribute)                \
  F(cuLaunchKernel)

// One member of each function's name. cuda.h maps names to versions (cuMemAlloc to cuMemAlloc_v2),
// in the members' too.
struct Driver {
#define ORIEL_CUDA_DRIVER_MEMBER(name) decltype(&::name) name = nullptr;
  ORIEL_CUDA_DRIVER_FUNCTIONS(ORIEL_CUDA_DRIVER_MEMBER)
#undef ORIEL_CUDA_DRIVER_MEMBER
  // Oriel's own kernels, each for cuModuleLoadData.
  std::vector<const void*> kernels;
  std::string architectures;  // that they are for, e.g. "sm_80, sm_90"
};

// An image of SystemDriver's table (a fatbin), given before main().
struct KernelImageRegistrar {
  KernelImageRegistrar(const void* image, const char* architectures);
};

// The machine's driver, loaded and initialised; the same table on every call. Unavailable, with
// what is missing and what to do, where there is no driver, it is older than CUDA 13, or it finds
// no device.
absl::StatusOr<const Driver*> SystemDriver();
// What SystemDriver asks of a table that is loaded: cuInit, the version, a device.
absl::Status CheckDriver(const Driver& driver);

// OK, or the driver's name and text of the error behind `what`, with the code that fits:
// ResourceExhausted for memory, Unavailable for a device that is not there or lost,
// InvalidArgument, Internal.
absl::Status DriverStatus(const Driver& driver, CUresult result, const char* what);

// ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver, cuMemAlloc, &address, bytes));
#define ORIEL_CUDA(driver, function, ...) \
  ::oriel::kernels::cuda::DriverStatus((driver), (driver).function(__VA_ARGS__), #function)

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_CUDA_DRIVER_H_
