// Linked, it lets the executor's tests run on emulated devices (TestBackend).
#include "runtime/exec/emulated_testing.h"

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/emulator/emulated_driver.h"
#include "kernels/cuda/registry.h"
#include "runtime/base/status.h"
#include "runtime/exec/executor_testing.h"

namespace oriel::runtime {
namespace {

namespace cuda = kernels::cuda;
using kernels::KernelArgs;
using kernels::KernelFn;
using kernels::KernelSpec;

absl::Status Enqueue(const KernelArgs& args, const std::string& name,
                     cuda::EmulatedOperation operation) {
  if (cuda::EnqueueEmulated(cuda::StreamOf(args), name, std::move(operation)) == CUDA_SUCCESS) {
    return absl::OkStatus();
  }
  return absl::InternalError(cuda::EmulatorError());
}

// As a kernel that finds an index out of range.
absl::StatusOr<KernelFn> PrepareFail(const KernelSpec& spec, cuda::Device& device) {
  ORIEL_ASSIGN_OR_RETURN(const int64_t index, spec.Int("index"));
  auto* fault = reinterpret_cast<cuda::Fault*>(device.fault());
  const int32_t launch = device.NextLaunch("index {value} is not in [0, {limit})");
  return KernelFn([=](const KernelArgs& args) {
    return Enqueue(args, "test_fail", [=](bool) {
      if (fault->kind == 0) *fault = {cuda::kIndexOutOfRange, launch, index, 7, 0};
      return CUDA_SUCCESS;
    });
  });
}

}  // namespace

absl::StatusOr<KernelFn> PrepareHostKernel(const KernelSpec& spec, cuda::Device& device) {
  if (spec.kernel == "test_fail") return PrepareFail(spec, device);
  ORIEL_ASSIGN_OR_RETURN(KernelFn kernel, kernels::KernelRegistry::Host().Prepare(spec));
  return KernelFn([kernel = std::move(kernel), name = spec.kernel, operands = spec.operands.size(),
                   results = spec.results.size()](const KernelArgs& args) {
    // A launch takes the addresses when it is made.
    std::vector<const void*> from(args.operands, args.operands + operands);
    std::vector<void*> to(args.results, args.results + results);
    return Enqueue(args, name, [kernel, from, to](bool) {
      return kernel({from.data(), to.data()}).ok() ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_FAILED;
    });
  });
}

const cuda::Driver& TestDriver() {
  static const cuda::Driver* const driver = [] {
    cuda::EmulatorOptions options;
    options.devices = kEmulatedDevices;
    const char* seed = std::getenv("ORIEL_CUDA_EMULATOR_SEED");
    options.seed = seed == nullptr ? 0 : std::strtoull(seed, nullptr, 10);
    return &cuda::EmulatedDriver(options);
  }();
  return *driver;
}

namespace {

// Ranks of a test share the devices.
std::shared_ptr<Backend> MakeEmulated() {
  static std::atomic<int> made{0};
  absl::StatusOr<std::unique_ptr<Backend>> backend =
      MakeCudaBackend(TestDriver(), made++ % kEmulatedDevices, &PrepareHostKernel);
  EXPECT_TRUE(backend.ok()) << backend.status();
  return *std::move(backend);
}

const bool registered = [] {
  TestBackend() = &MakeEmulated;
  return true;
}();

}  // namespace
}  // namespace oriel::runtime
