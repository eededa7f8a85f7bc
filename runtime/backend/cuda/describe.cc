#include "runtime/backend/cuda/describe.h"

#include <dlfcn.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/cuda/libraries/oldest_versions.h"
#include "runtime/base/status.h"

namespace oriel::runtime {
namespace {

using Json = nlohmann::ordered_json;
using kernels::cuda::Driver;

// A library that is loaded when it is first needed.
struct Library {
  const char* name;
  const char* file;
  const char* needed_for;
  std::string (*version)(void* library);  // empty: it has not the function
  std::string (*problem)(void* library);  // why it is not used though it is there; empty: it is
};

std::string NoProblem(void*) { return ""; }

std::string CublasVersion(void* library) {
  const auto get = reinterpret_cast<size_t (*)()>(dlsym(library, "cublasLtGetVersion"));
  if (get == nullptr) return "";
  const size_t version = get();
  return absl::StrCat(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

std::string CudnnVersion(void* library) {
  const auto get = reinterpret_cast<size_t (*)()>(dlsym(library, "cudnnGetVersion"));
  if (get == nullptr) return "";
  const size_t version = get();
  return absl::StrCat(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

// As CheckCudnn (kernels/cuda/libraries/cudnn.h).
std::string CudnnProblem(void* library) {
#ifdef ORIEL_HAVE_CUDNN
  const auto version = reinterpret_cast<size_t (*)()>(dlsym(library, "cudnnGetVersion"));
  const auto cuda = reinterpret_cast<size_t (*)()>(dlsym(library, "cudnnGetCudartVersion"));
  if (version != nullptr && cuda != nullptr && cuda() >= 13000 &&
      version() >= size_t{kernels::cuda::kOldestCudnn}) {
    return "";
  }
  return "9.19 or newer for CUDA 13 is needed";
#else
  (void)library;
  return "this build does not use it: it was built without the headers of cudnn-frontend "
         "(tools/setup.sh)";
#endif
}

// 0 if it does not say.
int NcclNumber(void* library) {
  const auto get = reinterpret_cast<int (*)(int*)>(dlsym(library, "ncclGetVersion"));
  int version = 0;
  return get != nullptr && get(&version) == 0 ? version : 0;
}

std::string NcclVersion(void* library) {
  const int version = NcclNumber(library);
  if (version == 0) return "";
  return absl::StrCat(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

// As SystemNccl (runtime/comm/nccl/nccl_library.h).
std::string NcclProblem(void* library) {
#ifdef ORIEL_HAVE_NCCL
  if (NcclNumber(library) >= kernels::cuda::kOldestNccl) return "";
  return "2.26 or newer is needed";
#else
  (void)library;
  return "this build does not use it: it was built without nccl.h; ranks communicate through the "
         "host";
#endif
}

constexpr Library kLibraries[] = {
    {"cuBLASLt", "libcublasLt.so.13", "matrix products", CublasVersion, NoProblem},
    {"cuDNN", "libcudnn.so.9", "attention and convolutions, faster", CudnnVersion, CudnnProblem},
    {"NCCL", "libnccl.so.2", "several devices", NcclVersion, NcclProblem},
};

Json DescribeLibrary(const Library& library) {
  Json json = {{"name", library.name}, {"file", library.file}, {"needed_for", library.needed_for}};
  void* loaded = dlopen(library.file, RTLD_LAZY | RTLD_LOCAL);
  json["ok"] = loaded != nullptr;
  if (loaded == nullptr) {
    json["problem"] = dlerror();
  } else {
    const std::string problem = library.problem(loaded);
    json["version"] = library.version(loaded);
    if (!problem.empty()) {
      json["ok"] = false;
      json["problem"] = absl::StrCat(json["version"].get<std::string>(), ": ", problem);
      json.erase("version");
    }
    dlclose(loaded);
  }
  return json;
}

absl::StatusOr<Json> DescribeDevice(const Driver& driver, int ordinal) {
  CUdevice device = 0;
  ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver, cuDeviceGet, &device, ordinal));
  char name[256] = {};
  ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver, cuDeviceGetName, name, sizeof name - 1, device));
  int major = 0, minor = 0;
  ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver, cuDeviceGetAttribute, &major,
                                   CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
  ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver, cuDeviceGetAttribute, &minor,
                                   CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
  size_t total = 0;
  ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver, cuDeviceTotalMem, &total, device));
  Json json = {
      {"name", name}, {"architecture", absl::StrCat("sm_", major, minor)}, {"memory_bytes", total}};
  CUcontext context = nullptr;
  ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver, cuDevicePrimaryCtxRetain, &context, device));
  size_t free = 0;
  absl::Status status = ORIEL_CUDA(driver, cuCtxSetCurrent, context);
  if (status.ok()) status = ORIEL_CUDA(driver, cuMemGetInfo, &free, &total);
  (void)driver.cuCtxSetCurrent(nullptr);
  (void)driver.cuDevicePrimaryCtxRelease(device);
  ORIEL_RETURN_IF_ERROR(status);
  json["free_bytes"] = free;
  return json;
}

absl::StatusOr<Json> DescribeDevices(const Driver& driver) {
  int count = 0;
  ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver, cuDeviceGetCount, &count));
  Json devices = Json::array();
  for (int i = 0; i < count; ++i) {
    absl::StatusOr<Json> device = DescribeDevice(driver, i);
    devices.push_back(device.ok() ? *std::move(device)
                                  : Json{{"problem", std::string(device.status().message())}});
  }
  return devices;
}

}  // namespace

std::string DescribeCuda(const absl::StatusOr<const Driver*>& driver) {
  Json json = {
      {"architectures", ""}, {"driver", {{"ok", driver.ok()}}}, {"devices", Json::array()}};
  if (driver.ok()) {
    json["architectures"] = (*driver)->architectures;
    int version = 0;
    (void)(*driver)->cuDriverGetVersion(&version);
    json["driver"]["version"] = absl::StrFormat("%d.%d", version / 1000, version % 1000 / 10);
    absl::StatusOr<Json> devices = DescribeDevices(**driver);
    if (devices.ok()) {
      json["devices"] = *std::move(devices);
    } else {
      json["driver"]["ok"] = false;
      json["driver"]["problem"] = std::string(devices.status().message());
    }
  } else {
    json["driver"]["problem"] = std::string(driver.status().message());
  }
  Json& libraries = json["libraries"] = Json::array();
  for (const Library& library : kLibraries) libraries.push_back(DescribeLibrary(library));
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace oriel::runtime
