#include "kernels/cuda/libraries/cudnn.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "kernels/cuda/libraries/library.h"
#include "kernels/cuda/libraries/oldest_versions.h"
#include "runtime/base/status.h"

namespace oriel::kernels::cuda {
namespace {

// The major version is part of the name: another one has other descriptors.
const LibraryName kLibrary = {
    "libcudnn.so.9", "cuDNN 9",
    "install cuDNN 9.19 or newer for CUDA 13, or add its folder to LD_LIBRARY_PATH"};

absl::StatusOr<const Cudnn*> Load() {
  ORIEL_ASSIGN_OR_RETURN(void* library, LoadLibrary(kLibrary));
  static Cudnn table;
#define ORIEL_CUDNN_FIND(name) \
  ORIEL_RETURN_IF_ERROR(FindSymbol(library, kLibrary, #name, &table.name));
  ORIEL_CUDNN_FUNCTIONS(ORIEL_CUDNN_FIND)
#undef ORIEL_CUDNN_FIND
  ORIEL_RETURN_IF_ERROR(CheckCudnn(table));
  return &table;
}

std::map<const Driver*, const Cudnn*>& Provided() {
  static auto* const tables = new std::map<const Driver*, const Cudnn*>;
  return *tables;
}

}  // namespace

absl::StatusOr<const Cudnn*> SystemCudnn() {
  static const auto* const loaded = new absl::StatusOr<const Cudnn*>(Load());
  return *loaded;
}

absl::Status CheckCudnn(const Cudnn& table) {
  const size_t version = table.cudnnGetVersion(), cuda = table.cudnnGetCudartVersion();
  if (version >= size_t{kOldestCudnn} && cuda >= 13000) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(kLibrary.file, " is cuDNN ", CudnnVersionText(version),
                                             " for CUDA ", cuda / 1000, "; ", kLibrary.remedy));
}

absl::StatusOr<const Cudnn*> CudnnFor(const Driver& driver) {
  const auto found = Provided().find(&driver);
  if (found != Provided().end()) return found->second;
  return SystemCudnn();
}

void ProvideCudnn(const Driver& driver, const Cudnn& table) { Provided()[&driver] = &table; }

absl::Status CudnnStatus(const Cudnn& table, cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return absl::OkStatus();
  std::string message = absl::StrCat(what, ": ", table.cudnnGetErrorString(status));
  char last[1024] = {};
  table.cudnnGetLastErrorString(last, sizeof(last));
  if (last[0] != '\0') absl::StrAppend(&message, " (", absl::StripAsciiWhitespace(last), ")");
  // The thousands are its categories: 1 initialisation, 2 parameters, 3 support, 4 inside, 5 run.
  switch (status / 1000) {
    case 1:
      return absl::FailedPreconditionError(message);
    case 2:
      return absl::InvalidArgumentError(message);
    case 3:
      return absl::UnimplementedError(message);
    default:
      break;
  }
  if (status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED) {
    return runtime::DeviceMemoryError(message);
  }
  return status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED
             ? absl::ResourceExhaustedError(message)
             : absl::InternalError(message);
}

std::string CudnnVersionText(size_t version) {
  return absl::StrCat(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

}  // namespace oriel::kernels::cuda
