// cuDNN 9, as a table of functions.
//
// The library is loaded when the first graph is prepared (it has a gigabyte in parts). Devices of
// the emulator have a table of their own (emulator/emulated_cudnn.cc). Graphs are made by NVIDIA's
// cudnn-frontend, see cudnn_graph.h.
//
//   ORIEL_ASSIGN_OR_RETURN(const Cudnn* cudnn, CudnnFor(device.driver()));
//   ORIEL_RETURN_IF_ERROR(ORIEL_CUDNN(*cudnn, cudnnCreate, &handle));
#ifndef ORIEL_KERNELS_CUDA_LIBRARIES_CUDNN_H_
#define ORIEL_KERNELS_CUDA_LIBRARIES_CUDNN_H_

#include <cudnn.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/driver.h"

namespace oriel::kernels::cuda {

// Every function of cuDNN that Oriel and cudnn-frontend call.
#define ORIEL_CUDNN_FUNCTIONS(F)   \
  F(cudnnGetVersion)               \
  F(cudnnGetCudartVersion)         \
  F(cudnnGetErrorString)           \
  F(cudnnGetLastErrorString)       \
  F(cudnnCreate)                   \
  F(cudnnDestroy)                  \
  F(cudnnSetStream)                \
  F(cudnnGetStream)                \
  F(cudnnBackendCreateDescriptor)  \
  F(cudnnBackendDestroyDescriptor) \
  F(cudnnBackendSetAttribute)      \
  F(cudnnBackendGetAttribute)      \
  F(cudnnBackendFinalize)          \
  F(cudnnBackendExecute)

struct Cudnn {
#define ORIEL_CUDNN_MEMBER(name) decltype(&::name) name = nullptr;
  ORIEL_CUDNN_FUNCTIONS(ORIEL_CUDNN_MEMBER)
#undef ORIEL_CUDNN_MEMBER
};

// The machine's library; the same table on every call. Unavailable, with what is missing and what
// to do, if it is not there, too old, or for another CUDA.
absl::StatusOr<const Cudnn*> SystemCudnn();
// What SystemCudnn asks of a table that is loaded.
absl::Status CheckCudnn(const Cudnn& table);

// What works with the devices of `driver`: what was provided for it, else the machine's library.
absl::StatusOr<const Cudnn*> CudnnFor(const Driver& driver);
// `table` is for the devices of `driver` from now on. Before main(), or in one thread.
void ProvideCudnn(const Driver& driver, const Cudnn& table);

// OK, or the library's name of the error behind `what`, and what it says about the last one:
// Unimplemented where it has no implementation, ResourceExhausted for memory, InvalidArgument,
// FailedPrecondition, Internal.
absl::Status CudnnStatus(const Cudnn& table, cudnnStatus_t status, const char* what);

#define ORIEL_CUDNN(table, function, ...) \
  ::oriel::kernels::cuda::CudnnStatus((table), (table).function(__VA_ARGS__), #function)

// "9.19.0"
std::string CudnnVersionText(size_t version);

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_CUDA_LIBRARIES_CUDNN_H_
