#include "kernels/cuda/driver.h"

#include <dlfcn.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"

namespace oriel::kernels::cuda {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";
constexpr const char* kRemedy = "or run on the host (--device host)";
constexpr int kMinVersion = 13000;

absl::Status NoDevice(const std::string& why) {
  return absl::UnavailableError(absl::StrCat("no CUDA device: ", why, ", ", kRemedy));
}

std::string VersionName(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

absl::StatusOr<Driver> LoadDriver() {
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);  // for good
  if (library == nullptr) {
    return NoDevice(absl::StrCat(dlerror(), "; install NVIDIA's driver for CUDA ",
                                 VersionName(kMinVersion), " or later"));
  }
  Driver driver;
  // Twice, so that a name is what cuda.h's macros make of it: cuMemAlloc_v2.
#define ORIEL_CUDA_SYMBOL_(name) #name
#define ORIEL_CUDA_SYMBOL(name) ORIEL_CUDA_SYMBOL_(name)
#define ORIEL_CUDA_LOAD(name)                                                                     \
  driver.name = reinterpret_cast<decltype(driver.name)>(dlsym(library, ORIEL_CUDA_SYMBOL(name))); \
  if (driver.name == nullptr) {                                                                   \
    return NoDevice(absl::StrCat(kLibrary, " lacks ", ORIEL_CUDA_SYMBOL(name),                    \
                                 "; install a driver for CUDA ", VersionName(kMinVersion),        \
                                 " or later"));                                                   \
  }
  ORIEL_CUDA_DRIVER_FUNCTIONS(ORIEL_CUDA_LOAD)
#undef ORIEL_CUDA_LOAD
#undef ORIEL_CUDA_SYMBOL
#undef ORIEL_CUDA_SYMBOL_
  return driver;
}

// What the table of the machine's driver has besides functions.
Driver& Images() {
  static auto* images = new Driver;
  return *images;
}

}  // namespace

absl::Status CheckDriver(const Driver& driver) {
  if (const CUresult result = driver.cuInit(0); result != CUDA_SUCCESS) {
    return NoDevice(absl::StrCat(
        DriverStatus(driver, result, "cuInit").message(),
        "; look at nvidia-smi, and whether the devices are hidden (CUDA_VISIBLE_DEVICES, the "
        "container)"));
  }
  int version = 0;
  ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver, cuDriverGetVersion, &version));
  if (version < kMinVersion) {
    return NoDevice(absl::StrCat("the driver is for CUDA ", VersionName(version),
                                 "; install one for CUDA ", VersionName(kMinVersion), " or later"));
  }
  int devices = 0;
  ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver, cuDeviceGetCount, &devices));
  if (devices == 0) {
    return NoDevice(
        "the driver finds none; look at nvidia-smi, and whether the devices are hidden "
        "(CUDA_VISIBLE_DEVICES, the container)");
  }
  return absl::OkStatus();
}

absl::StatusOr<const Driver*> SystemDriver() {
  static const auto* const loaded = new absl::StatusOr<Driver>([]() -> absl::StatusOr<Driver> {
    ORIEL_ASSIGN_OR_RETURN(Driver driver, LoadDriver());
    ORIEL_RETURN_IF_ERROR(CheckDriver(driver));
    driver.kernels = Images().kernels;
    driver.architectures = Images().architectures;
    return driver;
  }());
  if (!loaded->ok()) return loaded->status();
  return &**loaded;
}

KernelImageRegistrar::KernelImageRegistrar(const void* image, const char* architectures) {
  Images().kernels.push_back(image);
  Images().architectures = architectures;
}

absl::Status DriverStatus(const Driver& driver, CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return absl::OkStatus();
  const char* name = nullptr;
  const char* text = nullptr;
  if (driver.cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) name = "unknown";
  if (driver.cuGetErrorString(result, &text) != CUDA_SUCCESS || text == nullptr) {
    text = "the driver has no text for it";
  }
  const std::string message =
      absl::StrCat(what, ": ", name, " (", static_cast<int>(result), "): ", text);
  switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      return absl::StartsWith(what, "cuMemAllocHost") ? absl::ResourceExhaustedError(message)
                                                      : runtime::DeviceMemoryError(message);
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
      return absl::ResourceExhaustedError(message);
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_DEVICE_NOT_LICENSED:
    case CUDA_ERROR_SYSTEM_NOT_READY:
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_NOT_INITIALIZED:
      return absl::UnavailableError(message);
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_INVALID_DEVICE:
      return absl::InvalidArgumentError(message);
    case CUDA_ERROR_NOT_FOUND:
      return absl::NotFoundError(message);
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
      return absl::FailedPreconditionError(message);
    default:
      return absl::InternalError(message);
  }
}

}  // namespace oriel::kernels::cuda
