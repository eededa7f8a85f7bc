#include "runtime/doctor/machine.h"

#include "runtime/base/status_testing.h"

namespace oriel::runtime {
namespace {

using ::testing::HasSubstr;

TEST(MachineTest, MemoryIsWhatTheControlGroupAllows) {
  const std::string meminfo =
      "MemTotal:       16777216 kB\nMemFree: 1 kB\nMemAvailable:    8388608 kB\n";
  EXPECT_EQ(MemoryOf(meminfo, std::nullopt).usable, int64_t{16} << 30);
  EXPECT_EQ(MemoryOf(meminfo, 9223372036854771712).usable, int64_t{16} << 30);
  const MachineMemory limited = MemoryOf(meminfo, int64_t{4} << 30);
  EXPECT_EQ(limited.total, int64_t{16} << 30);
  EXPECT_EQ(limited.available, int64_t{8} << 30);
  EXPECT_EQ(limited.usable, int64_t{4} << 30);
  EXPECT_EQ(MemoryOf("", int64_t{4} << 30).usable, 0);
}

TEST(MachineTest, ThisOne) {
  const MachineMemory memory = ReadMemory();
  EXPECT_GT(memory.usable, 0);
  EXPECT_LE(memory.usable, memory.total);
}

TEST(MachineTest, CudaDevices) {
  const absl::StatusOr<std::vector<CudaDevice>> devices = CudaDevicesOf(std::string(R"({
    "driver": {"ok": true}, "devices": [{"name": "NVIDIA H100", "memory_bytes": 85899345920}]})"));
  ASSERT_TRUE(devices.ok()) << devices.status();
  ASSERT_EQ(devices->size(), 1u);
  EXPECT_EQ(devices->front().name, "NVIDIA H100");
  EXPECT_EQ(devices->front().memory, 85899345920);
}

TEST(MachineTest, NoCudaDevices) {
  const std::pair<absl::StatusOr<std::string>, const char*> cases[] = {
      {absl::UnavailableError("x.so is missing"), "x.so is missing"},
      {R"({"driver": {"ok": false, "problem": "no libcuda"}, "devices": []})", "no libcuda"},
      {R"({"driver": {"ok": true}, "devices": []})", "shows no device"},
      {R"({"driver": {"ok": true}, "devices": [{"problem": "is broken"}]})", "is broken"},
      {R"({"driver": {"ok": true}, "devices": [{"name": 3}]})", "understands"},
      {"no json", "understands"}};
  for (const auto& [description, message] : cases) {
    const absl::StatusOr<std::vector<CudaDevice>> devices = CudaDevicesOf(description);
    ASSERT_FALSE(devices.ok());
    EXPECT_TRUE(absl::IsUnavailable(devices.status()));
    EXPECT_THAT(std::string(devices.status().message()), HasSubstr(message));
  }
}

}  // namespace
}  // namespace oriel::runtime
