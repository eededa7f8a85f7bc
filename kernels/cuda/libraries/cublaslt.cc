#include "kernels/cuda/libraries/cublaslt.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/libraries/library.h"
#include "runtime/base/status.h"

namespace oriel::kernels::cuda {
namespace {

// The major version is part of the name: another one has other descriptors.
const LibraryName kLibrary = {
    "libcublasLt.so.13", "cuBLASLt 13",
    "install the libraries of CUDA 13 (libcublas), or add their folder to LD_LIBRARY_PATH"};

absl::StatusOr<const CublasLt*> Load() {
  ORIEL_ASSIGN_OR_RETURN(void* library, LoadLibrary(kLibrary));
  static CublasLt table;
#define ORIEL_CUBLASLT_FIND(name) \
  ORIEL_RETURN_IF_ERROR(FindSymbol(library, kLibrary, #name, &table.name));
  ORIEL_CUBLASLT_FUNCTIONS(ORIEL_CUBLASLT_FIND)
#undef ORIEL_CUBLASLT_FIND
  return &table;
}

std::map<const Driver*, const CublasLt*>& Provided() {
  static auto* const tables = new std::map<const Driver*, const CublasLt*>;
  return *tables;
}

}  // namespace

absl::StatusOr<const CublasLt*> SystemCublasLt() {
  static const auto* const loaded = new absl::StatusOr<const CublasLt*>(Load());
  return *loaded;
}

absl::StatusOr<const CublasLt*> CublasLtFor(const Driver& driver) {
  const auto found = Provided().find(&driver);
  if (found != Provided().end()) return found->second;
  return SystemCublasLt();
}

void ProvideCublasLt(const Driver& driver, const CublasLt& table) { Provided()[&driver] = &table; }

absl::Status CublasLtStatus(const CublasLt& table, cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  const std::string message = absl::StrCat(what, ": ", table.cublasLtGetStatusName(status), " (",
                                           table.cublasLtGetStatusString(status), ")");
  switch (status) {
    case CUBLAS_STATUS_NOT_SUPPORTED:
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return absl::UnimplementedError(message);
    case CUBLAS_STATUS_ALLOC_FAILED:
      return runtime::DeviceMemoryError(message);
    case CUBLAS_STATUS_INVALID_VALUE:
      return absl::InvalidArgumentError(message);
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return absl::FailedPreconditionError(message);
    default:
      return absl::InternalError(message);
  }
}

}  // namespace oriel::kernels::cuda
