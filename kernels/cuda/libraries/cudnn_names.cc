// The names of cuDNN, the CUDA runtime and NVRTC that cudnn-frontend calls; see cudnn_in_use.h.
//
// Graphs of attention and convolutions need little of the runtime: to clear and fill workspaces,
// and to log. The rest (timing, engines that cudnn-frontend compiles itself, graphs that it writes
// into) answers that it is not supported.
#include <cuda_runtime_api.h>
#include <nvrtc.h>

#include "kernels/cuda/libraries/cudnn_in_use.h"

#define ORIEL_HIDDEN extern "C" __attribute__((visibility("hidden")))

namespace oriel::kernels::cuda {
namespace {

struct Tables {
  const Cudnn* cudnn = nullptr;
  const Driver* driver = nullptr;
};
Tables& InUse() {
  thread_local Tables tables;
  return tables;
}

CUdeviceptr AddressOf(const void* address) { return reinterpret_cast<CUdeviceptr>(address); }

// cudnn-frontend shows errors of the runtime by cudaGetErrorString.
cudaError_t Runtime(CUresult result) {
  return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorUnknown;
}

}  // namespace

CudnnInUse::CudnnInUse(const Cudnn& cudnn, const Driver* driver)
    : former_cudnn_(InUse().cudnn), former_driver_(InUse().driver) {
  InUse() = {&cudnn, driver};
}
CudnnInUse::~CudnnInUse() { InUse() = {former_cudnn_, former_driver_}; }

}  // namespace oriel::kernels::cuda

using oriel::kernels::cuda::AddressOf;
using oriel::kernels::cuda::InUse;
using oriel::kernels::cuda::Runtime;

// Calls outside any CudnnInUse, which are none: descriptors are kept and freed within.
#define ORIEL_CUDNN_FORWARD(name, ...)                               \
  if (InUse().cudnn == nullptr) return CUDNN_STATUS_NOT_INITIALIZED; \
  return InUse().cudnn->name(__VA_ARGS__)

ORIEL_HIDDEN size_t cudnnGetVersion(void) {
  return InUse().cudnn == nullptr ? 0 : InUse().cudnn->cudnnGetVersion();
}
ORIEL_HIDDEN const char* cudnnGetErrorString(cudnnStatus_t status) {
  return InUse().cudnn == nullptr ? "cuDNN is not in use"
                                  : InUse().cudnn->cudnnGetErrorString(status);
}
ORIEL_HIDDEN void cudnnGetLastErrorString(char* message, size_t size) {
  if (InUse().cudnn != nullptr) InUse().cudnn->cudnnGetLastErrorString(message, size);
}
ORIEL_HIDDEN cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* stream) {
  ORIEL_CUDNN_FORWARD(cudnnGetStream, handle, stream);
}
ORIEL_HIDDEN cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                                        cudnnBackendDescriptor_t* made) {
  ORIEL_CUDNN_FORWARD(cudnnBackendCreateDescriptor, type, made);
}
ORIEL_HIDDEN cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  ORIEL_CUDNN_FORWARD(cudnnBackendDestroyDescriptor, descriptor);
}
ORIEL_HIDDEN cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  ORIEL_CUDNN_FORWARD(cudnnBackendFinalize, descriptor);
}
ORIEL_HIDDEN cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                                    cudnnBackendAttributeName_t name,
                                                    cudnnBackendAttributeType_t type, int64_t count,
                                                    const void* elements) {
  ORIEL_CUDNN_FORWARD(cudnnBackendSetAttribute, descriptor, name, type, count, elements);
}
ORIEL_HIDDEN cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor,
                                                    cudnnBackendAttributeName_t name,
                                                    cudnnBackendAttributeType_t type,
                                                    int64_t requested, int64_t* count,
                                                    void* elements) {
  ORIEL_CUDNN_FORWARD(cudnnBackendGetAttribute, descriptor, name, type, requested, count, elements);
}
ORIEL_HIDDEN cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                               cudnnBackendDescriptor_t pack) {
  ORIEL_CUDNN_FORWARD(cudnnBackendExecute, handle, plan, pack);
}

ORIEL_HIDDEN cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                                         cudaStream_t stream) {
  if (InUse().driver == nullptr) return cudaErrorNotSupported;
  return Runtime(InUse().driver->cuMemcpyAsync(AddressOf(to), AddressOf(from), bytes, stream));
}
ORIEL_HIDDEN cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  if (InUse().driver == nullptr) return cudaErrorNotSupported;
  return Runtime(InUse().driver->cuMemsetD8Async(AddressOf(to), static_cast<unsigned char>(value),
                                                 bytes, stream));
}
// What is said and dumped with CUDNN_FRONTEND_LOG_INFO: tensors lie on the device.
ORIEL_HIDDEN cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes,
                                                  const void* pointer) {
  *attributes = {};
  attributes->type = cudaMemoryTypeDevice;
  attributes->devicePointer = const_cast<void*>(pointer);
  return cudaSuccess;
}
ORIEL_HIDDEN cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (InUse().driver == nullptr) return cudaErrorNotSupported;
  return Runtime(InUse().driver->cuStreamSynchronize(stream));
}
ORIEL_HIDDEN const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorNotSupported ? "Oriel has no CUDA runtime" : "the driver failed";
}
ORIEL_HIDDEN cudaError_t cudaGetLastError(void) { return cudaSuccess; }

#define ORIEL_CUDART_REFUSE(name, ...) \
  ORIEL_HIDDEN cudaError_t name(__VA_ARGS__) { return cudaErrorNotSupported; }
ORIEL_CUDART_REFUSE(cudaDeviceGetAttribute, int*, cudaDeviceAttr, int)
ORIEL_CUDART_REFUSE(cudaDeviceSynchronize, void)
ORIEL_CUDART_REFUSE(cudaEventCreate, cudaEvent_t*)
ORIEL_CUDART_REFUSE(cudaEventDestroy, cudaEvent_t)
ORIEL_CUDART_REFUSE(cudaEventElapsedTime, float*, cudaEvent_t, cudaEvent_t)
ORIEL_CUDART_REFUSE(cudaEventRecord, cudaEvent_t, cudaStream_t)
ORIEL_CUDART_REFUSE(cudaEventSynchronize, cudaEvent_t)
ORIEL_CUDART_REFUSE(cudaGetDevice, int*)
ORIEL_CUDART_REFUSE(cudaGetDriverEntryPointByVersion, const char*, void**, unsigned int,
                    unsigned long long, cudaDriverEntryPointQueryResult*)
ORIEL_CUDART_REFUSE(cudaGraphRetainUserObject, cudaGraph_t, cudaUserObject_t, unsigned int,
                    unsigned int)
ORIEL_CUDART_REFUSE(cudaKernelSetAttributeForDevice, cudaKernel_t, cudaFuncAttribute, int, int)
ORIEL_CUDART_REFUSE(cudaLaunchKernel, const void*, dim3, dim3, void**, size_t, cudaStream_t)
ORIEL_CUDART_REFUSE(cudaLibraryGetKernel, cudaKernel_t*, cudaLibrary_t, const char*)
ORIEL_CUDART_REFUSE(cudaLibraryLoadData, cudaLibrary_t*, const void*, cudaJitOption*, void**,
                    unsigned int, cudaLibraryOption*, void**, unsigned int)
ORIEL_CUDART_REFUSE(cudaLibraryUnload, cudaLibrary_t)
ORIEL_CUDART_REFUSE(cudaStreamGetCaptureInfo, cudaStream_t, cudaStreamCaptureStatus*,
                    unsigned long long*, cudaGraph_t*, const cudaGraphNode_t**,
                    const cudaGraphEdgeData**, size_t*)
ORIEL_CUDART_REFUSE(cudaThreadExchangeStreamCaptureMode, cudaStreamCaptureMode*)
ORIEL_CUDART_REFUSE(cudaUserObjectCreate, cudaUserObject_t*, void*, cudaHostFn_t, unsigned int,
                    unsigned int)
ORIEL_CUDART_REFUSE(cudaUserObjectRelease, cudaUserObject_t, unsigned int)

#define ORIEL_CUDNN_REFUSE(name, ...) \
  ORIEL_HIDDEN cudnnStatus_t name(__VA_ARGS__) { return CUDNN_STATUS_NOT_SUPPORTED; }
ORIEL_CUDNN_REFUSE(cudnnCreateFilterDescriptor, cudnnFilterDescriptor_t*)
ORIEL_CUDNN_REFUSE(cudnnDestroyFilterDescriptor, cudnnFilterDescriptor_t)
ORIEL_CUDNN_REFUSE(cudnnReorderFilterAndBias, cudnnHandle_t, const cudnnFilterDescriptor_t,
                   cudnnReorderType_t, const void*, void*, int, const void*, void*)
ORIEL_CUDNN_REFUSE(cudnnSetFilterNdDescriptor, cudnnFilterDescriptor_t, cudnnDataType_t,
                   cudnnTensorFormat_t, int, const int[])

#define ORIEL_NVRTC_REFUSE(name, ...) \
  ORIEL_HIDDEN nvrtcResult name(__VA_ARGS__) { return NVRTC_ERROR_COMPILATION; }
ORIEL_NVRTC_REFUSE(nvrtcCompileProgram, nvrtcProgram, int, const char* const*)
ORIEL_NVRTC_REFUSE(nvrtcCreateProgram, nvrtcProgram*, const char*, const char*, int,
                   const char* const*, const char* const*)
ORIEL_NVRTC_REFUSE(nvrtcDestroyProgram, nvrtcProgram*)
ORIEL_NVRTC_REFUSE(nvrtcGetCUBIN, nvrtcProgram, char*)
ORIEL_NVRTC_REFUSE(nvrtcGetCUBINSize, nvrtcProgram, size_t*)
ORIEL_NVRTC_REFUSE(nvrtcGetProgramLog, nvrtcProgram, char*)
ORIEL_NVRTC_REFUSE(nvrtcGetProgramLogSize, nvrtcProgram, size_t*)
