// On the emulated driver, which runs nothing before it is waited for, in an order of its own; with
// ORIEL_CUDA_TEST_DEVICE=gpu, on device 0.
#include "runtime/backend/cuda/cuda_backend.h"

#include <cstdlib>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/emulator/emulated_driver.h"
#include "kernels/cuda/registry.h"
#include "runtime/base/status_testing.h"

namespace oriel::runtime {
namespace {

namespace cuda = kernels::cuda;
using kernels::KernelArgs;
using kernels::KernelFn;
using kernels::KernelSpec;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// "double": y = 2 * x. "index": reports the first element that is not 0 or 1.
absl::StatusOr<KernelFn> Prepare(const KernelSpec& spec, cuda::Device& device) {
  const int64_t count = spec.operands[0].num_elements();
  const unsigned blocks = static_cast<unsigned>((count + 63) / 64);
  if (spec.kernel == "double") {
    ORIEL_ASSIGN_OR_RETURN(const cuda::Function function, device.Find("oriel_test_double"));
    return KernelFn([=](const KernelArgs& args) {
      return function.Launch({blocks}, {64}, cuda::StreamOf(args), args.operand<float>(0),
                             args.result<float>(0), count);
    });
  }
  if (spec.kernel == "index") {
    ORIEL_ASSIGN_OR_RETURN(const cuda::Function function, device.Find("oriel_test_index"));
    const CUdeviceptr fault = device.fault();
    const int32_t launch = device.NextLaunch("index: {value} is not in [0, {limit})");
    return KernelFn([=](const KernelArgs& args) {
      return function.Launch({blocks}, {64}, cuda::StreamOf(args), args.operand<float>(0), fault,
                             launch, count);
    });
  }
  return absl::NotFoundError(spec.kernel);
}

bool OnGpu() {
  const char* device = std::getenv("ORIEL_CUDA_TEST_DEVICE");
  return device != nullptr && std::string(device) == "gpu";
}

class CudaBackendTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  void SetUp() override {
    if (OnGpu()) {
      if (GetParam() != 0) GTEST_SKIP() << "a GPU has no seed";
      ORIEL_ASSERT_OK_AND_ASSIGN(driver_, cuda::SystemDriver());
    } else {
      cuda::EmulatorOptions options;
      options.seed = GetParam();
      options.memory_bytes = 64 << 20;
      driver_ = &cuda::EmulatedDriver(options);
    }
    ORIEL_ASSERT_OK_AND_ASSIGN(backend_, MakeCudaBackend(*driver_, 0, &Prepare));
  }

  DeviceMemory Floats(const std::vector<float>& values) {
    absl::StatusOr<DeviceMemory> memory = backend_->Allocate(values.size() * sizeof(float));
    EXPECT_TRUE(memory.ok()) << memory.status();
    ORIEL_EXPECT_OK(backend_->Upload(memory->get(), values.data(), values.size() * sizeof(float)));
    return *std::move(memory);
  }
  std::vector<float> Values(const DeviceMemory& memory, size_t count) {
    std::vector<float> values(count);
    ORIEL_EXPECT_OK(backend_->Download(values.data(), memory.get(), count * sizeof(float)));
    return values;
  }
  KernelFn Kernel(const std::string& name, int64_t count, int64_t launch) {
    KernelSpec spec;
    spec.kernel = name;
    spec.operands = spec.results = {{DType::kF32, {count}}};
    absl::StatusOr<KernelFn> kernel = backend_->Prepare(spec, launch);
    EXPECT_TRUE(kernel.ok()) << kernel.status();
    return *kernel;
  }
  absl::Status Launch(const KernelFn& kernel, const DeviceMemory& x, const DeviceMemory& y) {
    const void* operand = x.get();
    void* result = y.get();
    return kernel({&operand, &result, *backend_->Stream(0)});
  }

  const cuda::Driver* driver_ = nullptr;
  std::unique_ptr<Backend> backend_;
};

INSTANTIATE_TEST_SUITE_P(Seeds, CudaBackendTest, ::testing::Range<uint64_t>(0, 6));

TEST_P(CudaBackendTest, MemoryIsZeroed) {
  ORIEL_ASSERT_OK_AND_ASSIGN(const DeviceMemory memory, backend_->Allocate(40));
  EXPECT_THAT(Values(memory, 10), Each(0.0f));
}

TEST_P(CudaBackendTest, SaysHowMuchMemoryThereIs) {
  ORIEL_ASSERT_OK_AND_ASSIGN(const std::optional<int64_t> free, backend_->FreeBytes());
  ASSERT_TRUE(free.has_value());
  const int64_t bytes = *free + (int64_t{1} << 30);
  EXPECT_THAT(
      backend_->Allocate(bytes),
      StatusIs(absl::StatusCode::kResourceExhausted,
               AllOf(HasSubstr(absl::StrCat(bytes, " bytes on ")), HasSubstr(" are free"))));
}

// Larger than the pinned memory that it goes through, and back.
TEST_P(CudaBackendTest, CarriesLargeMemory) {
  std::vector<float> values(5 << 19);
  std::iota(values.begin(), values.end(), 0.0f);
  const DeviceMemory memory = Floats(values);
  std::vector<float> expected = std::exchange(values, std::vector<float>(values.size(), -1));
  EXPECT_EQ(Values(memory, expected.size()), expected);
}

TEST_P(CudaBackendTest, CopiesRunsAndFills) {
  const DeviceMemory x = Floats({1, 2, 3, 4, 5, 6}), y = Floats({0, 0, 0, 0});
  ORIEL_ASSERT_OK(backend_->CopyRuns(y.get(), x.get(), /*run=*/4, /*stride=*/12, /*count=*/2));
  ORIEL_ASSERT_OK(backend_->Copy(static_cast<float*>(y.get()) + 2, x.get(), 8));
  EXPECT_THAT(Values(y, 4), ElementsAre(1, 4, 1, 2));
  ORIEL_ASSERT_OK(backend_->Fill(x.get(), 0, 8));
  EXPECT_THAT(Values(x, 3), ElementsAre(0, 0, 3));
}

TEST_P(CudaBackendTest, OrdersStreamsByEvents) {
  ORIEL_ASSERT_OK_AND_ASSIGN(void* const stream, backend_->Stream(2));
  ORIEL_ASSERT_OK_AND_ASSIGN(const auto ready, backend_->MakeEvent());
  ORIEL_ASSERT_OK_AND_ASSIGN(const auto done, backend_->MakeEvent());
  const DeviceMemory x = Floats({1, 2}), y = Floats({0, 0}), z = Floats({0, 0});
  const KernelFn kernel = Kernel("double", 2, 0);
  ORIEL_ASSERT_OK(Launch(kernel, x, y));
  ORIEL_ASSERT_OK(backend_->Record(*ready, 0));
  ORIEL_ASSERT_OK(backend_->WaitFor(*ready, 2));
  const void* operand = y.get();
  void* result = z.get();
  ORIEL_ASSERT_OK(kernel({&operand, &result, stream}));
  ORIEL_ASSERT_OK(backend_->Record(*done, 2));
  ORIEL_ASSERT_OK(backend_->WaitFor(*done, 0));
  EXPECT_THAT(Values(z, 2), ElementsAre(4, 8));
  ORIEL_EXPECT_OK(backend_->Synchronize(*done));
}

TEST_P(CudaBackendTest, ReplaysARecording) {
  const DeviceMemory x = Floats({1}), y = Floats({0});
  const KernelFn kernel = Kernel("double", 1, 0);
  ORIEL_ASSERT_OK(backend_->BeginRecording());
  ORIEL_ASSERT_OK(Launch(kernel, x, y));
  ORIEL_ASSERT_OK(backend_->Copy(x.get(), y.get(), 4));
  ORIEL_ASSERT_OK_AND_ASSIGN(const auto recording, backend_->EndRecording());
  EXPECT_THAT(Values(x, 1), ElementsAre(1));
  for (int i = 0; i < 3; ++i) ORIEL_ASSERT_OK(backend_->Replay(*recording));
  EXPECT_THAT(Values(x, 1), ElementsAre(8));
}

TEST_P(CudaBackendTest, NamesTheLaunchOfAFault) {
  const DeviceMemory x = Floats({0, 1, 7});
  const KernelFn fine = Kernel("double", 3, 10), first = Kernel("index", 2, 11),
                 second = Kernel("index", 3, 12);
  int64_t launch = 0;
  ORIEL_ASSERT_OK(Launch(fine, x, Floats({0, 0, 0})));
  ORIEL_ASSERT_OK(Launch(first, x, x));
  ORIEL_ASSERT_OK(backend_->Synchronize(&launch));
  EXPECT_EQ(launch, -1);
  ORIEL_ASSERT_OK(Launch(second, x, x));
  ORIEL_ASSERT_OK(Launch(second, x, x));
  EXPECT_THAT(backend_->Synchronize(&launch),
              StatusIs(absl::StatusCode::kInvalidArgument, "index: 7 is not in [0, 2)"));
  EXPECT_EQ(launch, 12);
  ORIEL_EXPECT_OK(backend_->Synchronize(&launch));
}

// Two ranks may share a device.
TEST_P(CudaBackendTest, SharesADevice) {
  ORIEL_ASSERT_OK_AND_ASSIGN(auto other, MakeCudaBackend(*driver_, 0, &Prepare));
  const DeviceMemory x = Floats({3});
  other = nullptr;
  ORIEL_ASSERT_OK(backend_->MakeCurrent());
  EXPECT_THAT(Values(x, 1), ElementsAre(3));
}

}  // namespace
}  // namespace oriel::runtime
