// Initial values that a device makes: the host's, in every bit. On the emulator, or on a GPU with
// ORIEL_CUDA_TEST_DEVICE=gpu.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/emulator/emulated_driver.h"
#include "kernels/cuda/registry.h"
#include "runtime/base/remainder.h"
#include "runtime/base/status_testing.h"
#include "runtime/train/random_values.h"

namespace oriel::runtime {
namespace {

namespace cuda = kernels::cuda;

class RandomValuesOnDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* device = std::getenv("ORIEL_CUDA_TEST_DEVICE");
    driver_ = &cuda::EmulatedDriver();
    if (device != nullptr && std::string(device) == "gpu") {
      ORIEL_ASSERT_OK_AND_ASSIGN(driver_, cuda::SystemDriver());
    }
    ORIEL_ASSERT_OK_AND_ASSIGN(device_, cuda::Device::Open(*driver_, 0));
  }

  absl::StatusOr<std::vector<char>> MakeOnDevice(const kernels::KernelSpec& spec) {
    ORIEL_ASSIGN_OR_RETURN(const kernels::KernelFn kernel,
                           cuda::Registry::Get().Prepare(spec, *device_));
    std::vector<char> bytes(spec.results[0].bytes());
    CUdeviceptr memory = 0;
    ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(*driver_, cuMemAlloc, &memory, bytes.size()));
    void* result = reinterpret_cast<void*>(memory);
    ORIEL_RETURN_IF_ERROR(kernel({nullptr, &result, nullptr}));
    ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(*driver_, cuMemcpyAsync,
                                     reinterpret_cast<CUdeviceptr>(bytes.data()), memory,
                                     bytes.size(), nullptr));
    ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(*driver_, cuStreamSynchronize, nullptr));
    driver_->cuMemFree(memory);
    return bytes;
  }

  // Of what a parameter and its master's remainder start from.
  void ExpectHostsHalves(const plan::InitialValue& initial, const Shape& shape, const Box& box) {
    const TensorSpec spec{DType::kF32, shape};
    std::vector<float> values(box.num_elements());
    ORIEL_ASSERT_OK(FillInitialValue(initial, "a.weight", spec, box, 1, values.data()));
    auto launch = InitialValueOnDevice(initial, "a.weight", spec, box);
    ASSERT_TRUE(launch.has_value());
    launch->attributes["away"] = int64_t{1};
    std::vector<uint16_t> halves[2];
    for (const float value : values) {
      halves[0].push_back(RoundedAway(value));
      halves[1].push_back(static_cast<uint16_t>(RemainderOf(value)));
    }
    for (const int half : {0, 1}) {
      launch->results[0].dtype = half == 0 ? DType::kBF16 : DType::kI16;
      ORIEL_ASSERT_OK_AND_ASSIGN(const std::vector<char> made, MakeOnDevice(*launch));
      ASSERT_EQ(made.size(), 2 * values.size());
      EXPECT_EQ(std::memcmp(made.data(), halves[half].data(), made.size()), 0) << half;
    }
  }

  // Of f32 and bf16.
  void ExpectHostsBits(const plan::InitialValue& initial, const Shape& shape, const Box& box) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      SCOPED_TRACE(box.ToString() + " of " + std::string(DTypeName(dtype)));
      const TensorSpec spec{dtype, shape};
      std::vector<char> expected(TensorSpec{dtype, box.size}.bytes());
      ORIEL_ASSERT_OK(FillInitialValue(initial, "a.weight", spec, box, 1, expected.data()));
      const auto launch = InitialValueOnDevice(initial, "a.weight", spec, box);
      ASSERT_TRUE(launch.has_value());
      ORIEL_ASSERT_OK_AND_ASSIGN(const std::vector<char> made, MakeOnDevice(*launch));
      EXPECT_EQ(std::memcmp(made.data(), expected.data(), expected.size()), 0);
    }
  }

  const cuda::Driver* driver_ = nullptr;
  std::unique_ptr<cuda::Device> device_;
};

plan::InitialValue Normal() {
  plan::InitialValue value;
  value.set_seed(0xfedcba9876543210);
  value.mutable_normal()->set_mean(0.25);
  value.mutable_normal()->set_deviation(0.02);
  return value;
}

TEST_F(RandomValuesOnDevice, AreThoseOfTheHost) {
  plan::InitialValue uniform, constant;
  uniform.set_seed(7);
  uniform.mutable_uniform()->set_low(-3);
  uniform.mutable_uniform()->set_high(0.1);
  constant.set_constant(0.3);
  for (const plan::InitialValue& initial : {Normal(), uniform, constant}) {
    ExpectHostsBits(initial, {3, 50, 41}, WholeBox({3, 50, 41}));
    ExpectHostsBits(initial, {8}, {{3}, {5}});
    ExpectHostsBits(initial, {}, {{}, {}});
  }
  for (const plan::InitialValue& initial : {Normal(), uniform}) {
    ExpectHostsHalves(initial, {3, 50, 41}, WholeBox({3, 50, 41}));
    ExpectHostsHalves(initial, {8}, {{3}, {5}});
  }
}

// A rank's piece of a parameter that is cut in two dimensions, and one whose numbers take more than
// 32 bits.
TEST_F(RandomValuesOnDevice, OfABox) {
  ExpectHostsBits(Normal(), {6, 10, 14}, {{2, 0, 7}, {3, 10, 7}});
  ExpectHostsBits(Normal(), {1 << 20, 1 << 16}, {{(1 << 20) - 2, 5}, {2, 301}});
}

// Padding is not of the parameter: the host leaves it out.
TEST_F(RandomValuesOnDevice, BeyondTheParameterIsRefused) {
  const TensorSpec spec{DType::kF32, {5}};
  const auto launch = InitialValueOnDevice(Normal(), "w", spec, {{3}, {3}});
  ASSERT_TRUE(launch.has_value());
  EXPECT_EQ(MakeOnDevice(*launch).status().code(), absl::StatusCode::kUnimplemented);
}

TEST_F(RandomValuesOnDevice, WhatAFileHasIsNotMade) {
  plan::InitialValue initial;
  initial.set_file("weights.safetensors");
  EXPECT_FALSE(InitialValueOnDevice(initial, "w", {DType::kF32, {5}}, WholeBox({5})).has_value());
}

}  // namespace
}  // namespace oriel::runtime
