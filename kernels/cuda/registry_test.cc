#include "kernels/cuda/registry.h"

#include <cstdlib>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cuda/emulator/emulated_driver.h"

namespace oriel::kernels::cuda {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<KernelFn> TakesNone(const KernelSpec&, Device&) {
  return absl::UnimplementedError("first: is never right");
}
absl::StatusOr<KernelFn> TakesVectors(const KernelSpec& spec, Device&) {
  if (spec.operands[0].rank() != 1) return absl::UnimplementedError("second: takes vectors");
  return KernelFn([](const KernelArgs&) { return absl::OkStatus(); });
}

ORIEL_REGISTER_CUDA_KERNEL("registry_test", 0, TakesVectors);
ORIEL_REGISTER_CUDA_KERNEL("registry_test", 10, TakesNone);

class CudaRegistryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<Device>> device = Device::Open(EmulatedDriver(), 0);
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
  }
  absl::StatusOr<KernelFn> Prepare(const std::string& kernel, const Shape& shape) {
    const TensorSpec x{DType::kF32, shape};
    return Registry::Get().Prepare(KernelSpec{kernel, {x}, {x}, {}}, *device_);
  }

  std::unique_ptr<Device> device_;
};

TEST_F(CudaRegistryTest, ImplementationsAreAskedInOrder) {
  setenv("ORIEL_LOG", "dispatch", 1);
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(Prepare("registry_test", {3}).ok());
  const std::string logged = ::testing::internal::GetCapturedStderr();
  unsetenv("ORIEL_LOG");
  EXPECT_EQ(logged,
            "dispatch: cuda: registry_test(f32[3]): TakesVectors (not: first: is never right)\n");
}

TEST_F(CudaRegistryTest, RefusalsAreListed) {
  const absl::Status status = Prepare("registry_test", {2, 3}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("kernel registry_test(f32[2, 3]) has no implementation: first: is never "
                        "right; second: takes vectors"));
}

TEST_F(CudaRegistryTest, UnknownKernelIsNotFound) {
  const absl::Status status = Prepare("no_such", {1}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("CUDA devices is named 'no_such'"));
}

}  // namespace
}  // namespace oriel::kernels::cuda
