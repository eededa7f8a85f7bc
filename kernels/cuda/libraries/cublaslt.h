// cuBLASLt, as a table of functions.
//
// The library is loaded when the first product is prepared (it has half a gigabyte). Devices of the
// emulator have a table of their own (emulator/emulated_cublaslt.cc).
//
//   ORIEL_ASSIGN_OR_RETURN(const CublasLt* blas, CublasLtFor(device.driver()));
//   ORIEL_RETURN_IF_ERROR(ORIEL_CUBLASLT(*blas, cublasLtCreate, &handle));
#ifndef ORIEL_KERNELS_CUDA_LIBRARIES_CUBLASLT_H_
#define ORIEL_KERNELS_CUDA_LIBRARIES_CUBLASLT_H_

#include <cublasLt.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/driver.h"

namespace oriel::kernels::cuda {

// Every function of cuBLASLt that Oriel calls.
#define ORIEL_CUBLASLT_FUNCTIONS(F)       \
  F(cublasLtGetVersion)                   \
  F(cublasLtGetStatusName)                \
  F(cublasLtGetStatusString)              \
  F(cublasLtCreate)                       \
  F(cublasLtDestroy)                      \
  F(cublasLtMatmulDescCreate)             \
  F(cublasLtMatmulDescDestroy)            \
  F(cublasLtMatmulDescSetAttribute)       \
  F(cublasLtMatrixLayoutCreate)           \
  F(cublasLtMatrixLayoutDestroy)          \
  F(cublasLtMatrixLayoutSetAttribute)     \
  F(cublasLtMatmulPreferenceCreate)       \
  F(cublasLtMatmulPreferenceDestroy)      \
  F(cublasLtMatmulPreferenceSetAttribute) \
  F(cublasLtMatmulAlgoGetHeuristic)       \
  F(cublasLtMatmulAlgoConfigGetAttribute) \
  F(cublasLtMatmul)

// The header defines inline functions around some of these: the plain names are the library's.
struct CublasLt {
#define ORIEL_CUBLASLT_MEMBER(name) decltype(&::name) name = nullptr;
  ORIEL_CUBLASLT_FUNCTIONS(ORIEL_CUBLASLT_MEMBER)
#undef ORIEL_CUBLASLT_MEMBER
};

// The machine's library; the same table on every call. Unavailable, with what is missing and what
// to do, if it is not there or too old.
absl::StatusOr<const CublasLt*> SystemCublasLt();

// What works with the devices of `driver`: what was provided for it, else the machine's library.
absl::StatusOr<const CublasLt*> CublasLtFor(const Driver& driver);
// `table` is for the devices of `driver` from now on. Before main(), or in one thread.
void ProvideCublasLt(const Driver& driver, const CublasLt& table);

// OK, or the library's name and text of the error behind `what`: Unimplemented where it has no
// implementation, ResourceExhausted for memory, InvalidArgument, Internal.
absl::Status CublasLtStatus(const CublasLt& table, cublasStatus_t status, const char* what);

#define ORIEL_CUBLASLT(table, function, ...) \
  ::oriel::kernels::cuda::CublasLtStatus((table), (table).function(__VA_ARGS__), #function)

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_CUDA_LIBRARIES_CUBLASLT_H_
