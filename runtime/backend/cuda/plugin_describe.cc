// What oriel-run and oriel ask liboriel_cuda.so before they open a device (cuda_plugin.h).
#include <string>

#include "runtime/backend/cuda/describe.h"
#include "runtime/backend/cuda/plugin.h"

extern "C" {

__attribute__((visibility("default"))) void OrielDescribeCuda(std::string* json) {
  *json = oriel::runtime::DescribeCuda(oriel::runtime::PluginDriver());
}

__attribute__((visibility("default"))) int OrielCountCudaDevices(absl::Status* status) {
  const absl::StatusOr<const oriel::kernels::cuda::Driver*> driver = oriel::runtime::PluginDriver();
  *status = driver.status();
  int count = 0;
  if (status->ok()) *status = ORIEL_CUDA(**driver, cuDeviceGetCount, &count);
  return count;
}

}  // extern "C"
