#include "runtime/backend/cuda_plugin.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "runtime/base/executable.h"
#include "runtime/base/status.h"

namespace oriel::runtime {
namespace {

constexpr char kFile[] = "liboriel_cuda.so";
constexpr char kRemedy[] = "compile the plan for the host: oriel compile --device host";

// A function of the plugin, which is loaded for good.
absl::StatusOr<void*> FindEntry(const char* name) {
  ORIEL_ASSIGN_OR_RETURN(const std::string path, CudaPluginPath());
  if (access(path.c_str(), F_OK) != 0) {
    return absl::UnavailableError(absl::StrCat(
        "no CUDA backend: ", path, " is missing; build Oriel where the CUDA toolkit is installed ",
        "(cmake --preset cuda), or ", kRemedy));
  }
  // Local: what it links must not stand in for what this program has.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::UnavailableError(absl::StrCat("no CUDA backend: ", dlerror()));
  }
  void* entry = dlsym(library, name);
  if (entry == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("no CUDA backend: ", path, " is of another version of Oriel"));
  }
  return entry;
}

}  // namespace

absl::StatusOr<std::string> CudaPluginPath() {
  if (const char* file = std::getenv("ORIEL_CUDA_PLUGIN"); file != nullptr && *file != '\0') {
    return std::string(file);
  }
  ORIEL_ASSIGN_OR_RETURN(const std::string folder, ExecutableFolder());
  return absl::StrCat(folder, kFile);
}

absl::StatusOr<std::unique_ptr<Backend>> OpenCudaBackend(int ordinal) {
  ORIEL_ASSIGN_OR_RETURN(void* entry, FindEntry("OrielOpenCudaBackend"));
  absl::Status status;
  std::unique_ptr<Backend> backend(reinterpret_cast<OpenCudaBackendEntry>(entry)(ordinal, &status));
  if (backend == nullptr) return status;
  return backend;
}

absl::StatusOr<int> CountCudaDevices() {
  ORIEL_ASSIGN_OR_RETURN(void* entry, FindEntry("OrielCountCudaDevices"));
  absl::Status status;
  const int count = reinterpret_cast<CountCudaDevicesEntry>(entry)(&status);
  ORIEL_RETURN_IF_ERROR(status);
  return count;
}

absl::StatusOr<std::string> DescribeCuda() {
  ORIEL_ASSIGN_OR_RETURN(void* entry, FindEntry("OrielDescribeCuda"));
  std::string json;
  reinterpret_cast<DescribeCudaEntry>(entry)(&json);
  return json;
}

}  // namespace oriel::runtime
