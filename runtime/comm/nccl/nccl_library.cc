#include "runtime/comm/nccl/nccl_library.h"

#include <dlfcn.h>

#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/cuda/libraries/oldest_versions.h"
#include "runtime/base/status.h"

namespace oriel::runtime {
namespace {

constexpr const char* kLibrary = "libnccl.so.2";
constexpr int kMinVersion = kernels::cuda::kOldestNccl;

absl::Status NoNccl(const std::string& why) {
  return absl::UnavailableError(absl::StrCat(
      "no NCCL: ", why, "; install NCCL 2 for CUDA 13 (package libnccl2), or put the folder of ",
      kLibrary, " into LD_LIBRARY_PATH"));
}

absl::StatusOr<Nccl> Load() {
  // A plan gives each rank one order of all collectives; kernels of two communicators must reach a
  // GPU in it, or ranks wait for each other. NCCL reads this when it is loaded; who has set it
  // knows better.
  setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", /*overwrite=*/0);
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);  // for good
  if (library == nullptr) return NoNccl(dlerror());
  Nccl nccl;
#define ORIEL_NCCL_LOAD(name)                                               \
  nccl.name = reinterpret_cast<decltype(nccl.name)>(dlsym(library, #name)); \
  if (nccl.name == nullptr) return NoNccl(absl::StrCat(kLibrary, " lacks " #name));
  ORIEL_NCCL_FUNCTIONS(ORIEL_NCCL_LOAD)
#undef ORIEL_NCCL_LOAD
  int version = 0;
  ORIEL_RETURN_IF_ERROR(ORIEL_NCCL(nccl, ncclGetVersion, &version));
  if (version < kMinVersion) {
    return NoNccl(absl::StrCat("this is NCCL ", NcclVersionName(version), ", older than ",
                               NcclVersionName(kMinVersion)));
  }
  return nccl;
}

}  // namespace

absl::StatusOr<const Nccl*> SystemNccl() {
  static const auto* const loaded = new absl::StatusOr<Nccl>(Load());
  if (!loaded->ok()) return loaded->status();
  return &**loaded;
}

std::string NcclVersionName(int version) {
  // Until 2.8 there were three digits less.
  const int major = version >= 10000 ? version / 10000 : version / 1000;
  const int minor = version >= 10000 ? version % 10000 / 100 : version % 1000 / 100;
  return absl::StrCat(major, ".", minor, ".", version % 100);
}

absl::Status NcclStatus(const Nccl& nccl, ncclResult_t result, const char* what, ncclComm_t comm) {
  if (result == ncclSuccess || result == ncclInProgress) return absl::OkStatus();
  std::string text = absl::StrCat(what, ": ", nccl.ncclGetErrorString(result));
  const char* last = nccl.ncclGetLastError(comm);
  if (last != nullptr && *last != '\0') absl::StrAppend(&text, " (", last, ")");
  switch (result) {
    case ncclSystemError:
    case ncclRemoteError:
      return absl::AbortedError(text);
    case ncclInvalidArgument:
      return absl::InvalidArgumentError(text);
    case ncclInvalidUsage:
      return absl::FailedPreconditionError(text);
    case ncclUnhandledCudaError:
      // It has no code of its own for memory; these are the CUDA runtime's words.
      if (absl::StrContains(text, "out of memory")) return DeviceMemoryError(text);
      return absl::InternalError(text);
    default:
      return absl::InternalError(text);
  }
}

}  // namespace oriel::runtime
