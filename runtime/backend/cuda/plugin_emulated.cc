// Devices that are the CPU (kernels/cuda/emulator/). ORIEL_CUDA_EMULATOR_SEED is the seed of the
// order of what runs there, by default 0, ORIEL_CUDA_EMULATOR_MEMORY the bytes of a device.
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "kernels/cuda/emulator/emulated_driver.h"
#include "runtime/backend/cuda/plugin.h"
#include "runtime/base/status.h"
#include "runtime/comm/nccl/staged.h"
#ifdef ORIEL_HAVE_NCCL
#include "runtime/comm/nccl/cuda_communicator.h"
#include "runtime/comm/nccl/emulated_nccl.h"
#endif

namespace oriel::runtime {
namespace {

// Of an environment variable; without it, `number` stays.
template <typename T>
absl::Status ReadNumber(const char* variable, T* number) {
  const char* text = std::getenv(variable);
  if (text == nullptr || absl::SimpleAtoi(text, number)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(variable, " is '", text, "', not a number"));
}

absl::StatusOr<const kernels::cuda::Driver*> MakeDriver() {
  kernels::cuda::EmulatorOptions options;
  options.devices = 8;  // as a machine may have; those that nobody opens cost nothing
  ORIEL_RETURN_IF_ERROR(ReadNumber("ORIEL_CUDA_EMULATOR_SEED", &options.seed));
  ORIEL_RETURN_IF_ERROR(ReadNumber("ORIEL_CUDA_EMULATOR_MEMORY", &options.memory_bytes));
  return &kernels::cuda::EmulatedDriver(options);
}

}  // namespace

absl::StatusOr<const kernels::cuda::Driver*> PluginDriver() {
  static const auto* const driver = new absl::StatusOr<const kernels::cuda::Driver*>(MakeDriver());
  return *driver;
}

// The emulated NCCL is of one process.
absl::StatusOr<std::unique_ptr<Communicator>> PluginCommunicator(
    Communicator& host, const kernels::cuda::Device& device) {
#ifdef ORIEL_HAVE_NCCL
  if (host.name() == "in_process") {
    return OpenCudaCommunicator(host, device, [] { return &EmulatedNccl(); });
  }
#endif
  return OpenStagedWorld(host, device);
}

}  // namespace oriel::runtime
