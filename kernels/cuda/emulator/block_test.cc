#include "kernels/cuda/emulator/block.h"

#include <numeric>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cuda/fault.h"
#include "runtime/base/float16.h"

namespace oriel::kernels::cuda {
namespace {

using ::testing::HasSubstr;

template <typename... Args>
absl::Status Launch(const char* name, const EmulatedLaunch& launch, Args... args) {
  const EmulatedKernel* kernel = FindEmulated(name);
  if (kernel == nullptr) return absl::NotFoundError(name);
  void* addresses[] = {&args...};
  return kernel->run(launch, addresses);
}

EmulatedLaunch Of(unsigned blocks, unsigned threads, unsigned shared_bytes = 0) {
  return {{blocks}, {threads}, shared_bytes};
}

TEST(EmulatedBlockTest, BlocksAddUpTheirElements) {
  std::vector<int64_t> x(200), y(4);
  std::iota(x.begin(), x.end(), 1);
  const int64_t *from = x.data(), count = 200;
  int64_t* to = y.data();
  for (uint64_t seed = 0; seed < 20; ++seed) {
    emulator::SetSeed(seed);
    std::fill(y.begin(), y.end(), -1);
    ASSERT_TRUE(Launch("oriel_test_block_sum", Of(4, 64), from, to, count).ok());
    EXPECT_EQ(y, (std::vector<int64_t>{2080, 6176, 10272, 1572}));
  }
}

TEST(EmulatedBlockTest, EveryThreadOfTheGridRunsOnce) {
  std::vector<int32_t> y(3 * 4 * 5 * 2 * 7 * 3, -1);
  EmulatedLaunch launch{{3, 4, 5}, {2, 7, 3}};
  ASSERT_TRUE(Launch("oriel_test_indices", launch, y.data()).ok());
  for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], static_cast<int32_t>(i));
}

TEST(EmulatedBlockTest, LanesExchange) {
  std::vector<int32_t> y(32 * 8);
  ASSERT_TRUE(Launch("oriel_test_lanes", Of(1, 32), y.data()).ok());
  for (int lane = 0; lane < 32; ++lane) {
    const std::vector<int32_t> own(y.begin() + lane * 8, y.begin() + lane * 8 + 8);
    EXPECT_EQ(own, (std::vector<int32_t>{5, lane ^ 3, lane < 30 ? lane + 2 : lane,
                                         lane < 2 ? lane : lane - 2, lane / 8 * 8 + 1,
                                         lane % 8 < 4 ? lane + 4 : lane,
                                         static_cast<int32_t>(0xaaaaaaaa), 2}));
  }
}

// Both factors as their lines lie along k, and across; columns 8 to 15 of b are not read.
TEST(EmulatedBlockTest, TensorCoresMultiply) {
  std::vector<uint16_t> a(256), b(256);
  std::vector<float> x(256), y(256), c(16 * 8);
  for (int i = 0; i < 256; ++i) {
    x[i] = static_cast<float>(i * 7 % 31 - 15);
    y[i] = static_cast<float>(i * 11 % 29 - 14);
    a[i] = runtime::FloatToBFloat16(x[i]);
    b[i] = runtime::FloatToBFloat16(y[i]);
  }
  for (int32_t transposed : {0, 1}) {
    ASSERT_TRUE(
        Launch("oriel_test_product", Of(1, 32), a.data(), b.data(), c.data(), transposed).ok());
    for (int i = 0; i < 16; ++i) {
      for (int j = 0; j < 8; ++j) {
        float sum = 0;
        for (int k = 0; k < 16; ++k) {
          sum += transposed ? x[k * 16 + i] * y[k * 16 + j] : x[i * 16 + k] * y[j * 16 + k];
        }
        EXPECT_EQ(c[i * 8 + j], sum) << i << ", " << j << (transposed ? " transposed" : "");
      }
    }
  }
}

TEST(EmulatedBlockTest, BarriersCount) {
  int32_t y[2] = {0, 0};
  int32_t* to = y;
  Fault fault{};
  Fault* word = &fault;
  ASSERT_TRUE(Launch("oriel_test_count", Of(1, 96), to, word).ok());
  EXPECT_EQ(y[0], 48);
  EXPECT_EQ(y[1], 96);
  EXPECT_EQ(fault.kind, kIndexOutOfRange);
  EXPECT_EQ(fault.launch, 4);
  EXPECT_EQ(fault.value, -3);
  EXPECT_EQ(fault.limit, 10);
  EXPECT_EQ(fault.position, 2);
}

// What shared memory held before is poison, so a read ahead of its write shows.
TEST(EmulatedBlockTest, AMissingBarrierShows) {
  std::vector<int32_t> x(64), y(64);
  std::iota(x.begin(), x.end(), 0);
  const int32_t* from = x.data();
  int32_t* to = y.data();
  const std::vector<int32_t> reversed(x.rbegin(), x.rend());
  ASSERT_TRUE(Launch("oriel_test_reverse", Of(1, 64, 256), from, to, int32_t{1}).ok());
  EXPECT_EQ(y, reversed);
  ASSERT_TRUE(Launch("oriel_test_reverse", Of(1, 64, 256), from, to, int32_t{0}).ok());
  EXPECT_NE(y, reversed);
}

std::string Wrong(int32_t how) {
  const absl::Status status = Launch("oriel_test_wrong", Of(3, 64, 128), how);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("oriel_test_wrong, block ("));
  return std::string(status.message());
}

TEST(EmulatedBlockTest, WhatHangsOnAGpuIsAnError) {
  EXPECT_THAT(Wrong(0), HasSubstr("of 64 threads 32 wait at __syncthreads, 32 have returned"));
  EXPECT_THAT(Wrong(1), HasSubstr("of 64 threads 31 wait at __syncwarp, 33 have returned"));
  EXPECT_THAT(Wrong(2), HasSubstr("__shfl_sync of a part of a warp"));
  EXPECT_THAT(Wrong(3), HasSubstr("lanes of a warp meet at"));
  EXPECT_THAT(Wrong(4), HasSubstr("__trap"));
  EXPECT_THAT(Wrong(5), HasSubstr("of shared memory is written, of which the launch has 128"));
  // And the next launch is none the worse.
  EXPECT_TRUE(Launch("oriel_test_wrong", Of(3, 64, 128), int32_t{6}).ok());
}

TEST(EmulatedBlockTest, LaunchesThatAGpuRefusesAreRefused) {
  const auto message = [](const EmulatedLaunch& launch) {
    const absl::Status status = Launch("oriel_test_wrong", launch, int32_t{6});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_THAT(message(Of(0, 64)), HasSubstr("a grid of 0 x 1 x 1 blocks"));
  EXPECT_THAT(message({{1, 70000}, {64}, 0}), HasSubstr("a grid of 1 x 70000 x 1 blocks"));
  EXPECT_THAT(message(Of(1, 128)), HasSubstr("128 x 1 x 1 threads, where it takes up to 64"));
  EXPECT_THAT(message(Of(1, 64, 1 << 20)), HasSubstr("1048576 bytes of shared memory"));
}

}  // namespace
}  // namespace oriel::kernels::cuda
