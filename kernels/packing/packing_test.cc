#include "kernels/packing/packing.h"

#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/cuda/emulator/block.h"
#include "kernels/cuda/emulator/emulated_driver.h"
#include "kernels/packing/packing_args.h"
#include "runtime/base/status_testing.h"

namespace oriel::kernels::cuda {
namespace {

using ::testing::HasSubstr;

class PackingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* where = std::getenv("ORIEL_CUDA_TEST_DEVICE");
    const Driver* driver = &EmulatedDriver();
    if (where != nullptr && std::string(where) == "gpu") {
      ORIEL_ASSERT_OK_AND_ASSIGN(driver, SystemDriver());
    }
    ORIEL_ASSERT_OK_AND_ASSIGN(device_, Device::Open(*driver, 0));
    ASSERT_EQ(device_->driver().cuMemAlloc(&memory_, kBytes), CUDA_SUCCESS);
    bytes_.resize(kBytes);
    std::iota(bytes_.begin(), bytes_.end(), 0);
    for (size_t i = 0; i < bytes_.size(); ++i) bytes_[i] ^= static_cast<unsigned char>(i >> 8);
  }
  void TearDown() override {
    if (memory_ != 0) device_->driver().cuMemFree(memory_);
  }

  void Copy(CUdeviceptr target, CUdeviceptr source) {
    ASSERT_EQ(device_->driver().cuMemcpyAsync(target, source, kBytes, nullptr), CUDA_SUCCESS);
    ASSERT_EQ(device_->driver().cuStreamSynchronize(nullptr), CUDA_SUCCESS);
  }

  struct Case {
    int64_t source, target;  // bytes from the memory's begin
    int64_t outer, inner, run;
  };

  // Swaps all at once on the device, one by one here; compares all memory.
  void Check(const std::vector<Case>& cases) {
    ORIEL_ASSERT_OK_AND_ASSIGN(const Packer packer, Packer::Find(*device_));
    Copy(memory_, reinterpret_cast<CUdeviceptr>(bytes_.data()));
    std::vector<RunsToSwap> swaps;
    std::vector<unsigned char> expected = bytes_;
    for (const Case& swap : cases) {
      swaps.push_back({reinterpret_cast<const void*>(memory_ + swap.source),
                       reinterpret_cast<void*>(memory_ + swap.target), swap.outer, swap.inner,
                       swap.run});
      for (int64_t i = 0; i < swap.outer; ++i) {
        for (int64_t j = 0; j < swap.inner; ++j) {
          std::memcpy(&expected[swap.target + (j * swap.outer + i) * swap.run],
                      &bytes_[swap.source + (i * swap.inner + j) * swap.run], swap.run);
        }
      }
    }
    ORIEL_ASSERT_OK(packer.Swap(swaps, nullptr));
    std::vector<unsigned char> actual(kBytes);
    Copy(reinterpret_cast<CUdeviceptr>(actual.data()), memory_);
    for (size_t i = 0; i < kBytes; ++i) ASSERT_EQ(actual[i], expected[i]) << "byte " << i;
  }

  static constexpr size_t kBytes = 1 << 18;
  std::unique_ptr<Device> device_;
  CUdeviceptr memory_ = 0;
  std::vector<unsigned char> bytes_;
};

TEST_F(PackingTest, MovesTheLargestUnitThatAllAreMultiplesOf) {
  for (const int64_t unit : {1, 2, 4, 8, 16, 32}) {
    SCOPED_TRACE(unit);
    Check({{unit, (1 << 17) + 3 * unit, 5, 3, 7 * unit}});
  }
}

TEST_F(PackingTest, MovesManyTensorsOfAllKinds) {
  std::vector<Case> cases;
  int64_t at = 0;
  for (int i = 0; i < 2 * kPackTensors + 3; ++i) {
    const int64_t unit = int64_t{1} << i % 5;
    const Case swap{at, (1 << 17) + at, 1 + i % 4, 1 + i % 3, unit * (1 + i % 7)};
    cases.push_back(swap);
    at += (swap.outer * swap.inner * swap.run + 15) / 16 * 16;
  }
  cases.push_back({0, 1 << 17, 0, 3, 4});  // nothing
  Check(cases);
}

TEST_F(PackingTest, TakesSeveralBlocksForATensor) {
  for (uint64_t seed = 0; seed < 3; ++seed) {
    emulator::SetSeed(seed);
    Check({{0, 1 << 17, 123, 8, 16}, {16 * 1024, (1 << 17) + 64 * 1024, 3, 5, 4080}});
  }
}

TEST_F(PackingTest, RefusesWhatItsIndicesCannotCount) {
  ORIEL_ASSERT_OK_AND_ASSIGN(const Packer packer, Packer::Find(*device_));
  const void* address = reinterpret_cast<const void*>(memory_);
  const absl::Status status = packer.Swap(
      {{address, const_cast<void*>(address), int64_t{1} << 20, int64_t{1} << 11, 3}}, nullptr);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("too large to be packed"));
}

}  // namespace
}  // namespace oriel::kernels::cuda
