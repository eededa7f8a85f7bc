#include "runtime/backend/cuda/describe.h"

#include <nlohmann/json.hpp>

#include "kernels/cuda/emulator/emulated_driver.h"
#include "runtime/base/status_testing.h"

namespace oriel::runtime {
namespace {

using ::testing::HasSubstr;

TEST(DescribeCudaTest, DevicesAndLibraries) {
  kernels::cuda::EmulatorOptions options;
  options.devices = 2;
  const auto json = nlohmann::json::parse(DescribeCuda(&kernels::cuda::EmulatedDriver(options)));
  EXPECT_EQ(json["driver"]["ok"], true);
  ASSERT_EQ(json["devices"].size(), 2u);
  for (const auto& device : json["devices"]) {
    EXPECT_THAT(device["architecture"].get<std::string>(), HasSubstr("sm_"));
    EXPECT_GT(device["memory_bytes"].get<int64_t>(), 0);
    EXPECT_LE(device["free_bytes"].get<int64_t>(), device["memory_bytes"].get<int64_t>());
  }
  // Whether they are there or not, all are named.
  ASSERT_EQ(json["libraries"].size(), 3u);
  for (const auto& library : json["libraries"]) {
    const bool ok = library["ok"].get<bool>();
    EXPECT_EQ(library.count("version"), ok ? 1u : 0u) << library;
    EXPECT_EQ(library.count("problem"), ok ? 0u : 1u) << library;
  }
}

TEST(DescribeCudaTest, NoDriver) {
  const auto json = nlohmann::json::parse(DescribeCuda(absl::UnavailableError("no libcuda.so.1")));
  EXPECT_EQ(json["driver"]["ok"], false);
  EXPECT_EQ(json["driver"]["problem"], "no libcuda.so.1");
  EXPECT_TRUE(json["devices"].empty());
}

}  // namespace
}  // namespace oriel::runtime
