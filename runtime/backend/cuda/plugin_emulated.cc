// Devices that are the CPU (kernels/cuda/emulator/). ORIEL_CUDA_EMULATOR_SEED is the seed of the
// order of what runs there, by default 0.
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "kernels/cuda/emulator/emulated_driver.h"
#include "runtime/backend/cuda/plugin.h"
#include "runtime/comm/nccl/staged.h"
#ifdef ORIEL_HAVE_NCCL
#include "runtime/comm/nccl/emulated_nccl.h"
#include "runtime/comm/nccl/nccl_communicator.h"
#endif

namespace oriel::runtime {
namespace {

absl::StatusOr<const kernels::cuda::Driver*> MakeDriver() {
  kernels::cuda::EmulatorOptions options;
  options.devices = 8;  // as a machine may have; those that nobody opens cost nothing
  const char* seed = std::getenv("ORIEL_CUDA_EMULATOR_SEED");
  if (seed != nullptr && !absl::SimpleAtoi(seed, &options.seed)) {
    return absl::InvalidArgumentError(
        absl::StrCat("ORIEL_CUDA_EMULATOR_SEED is '", seed, "', not a number"));
  }
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
  const char* kind = std::getenv("ORIEL_DEVICE_COMM");
  const bool staged = kind != nullptr && absl::string_view(kind) == "staged";
  if (host.name() == "in_process" && !staged) return OpenNcclWorld(host, device, EmulatedNccl());
#endif
  return OpenStagedWorld(host, device);
}

}  // namespace oriel::runtime
