#include "driver/this_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace oriel::driver {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kGiB = int64_t{1} << 30;

ThisMachine host(int64_t cores, int64_t ranks) {
  absl::StatusOr<ThisMachine> machine = hostMachine(cores, 64 * kGiB, ranks);
  EXPECT_TRUE(machine.ok()) << machine.status();
  return *std::move(machine);
}

std::vector<runtime::CudaDevice> gpus(int count, const std::string& name, int64_t memory) {
  return std::vector<runtime::CudaDevice>(count, {name, memory});
}

void expectRefused(const absl::StatusOr<ThisMachine>& machine, const std::string& message) {
  ASSERT_FALSE(machine.ok());
  EXPECT_THAT(std::string(machine.status().message()), HasSubstr(message));
  EXPECT_THAT(std::string(machine.status().message()), HasSubstr("--cluster FILE|NAME"));
}

TEST(ThisMachineTest, ARankPerCore) {
  const Cluster preset = *findCluster("cpu");
  const ThisMachine machine = host(8, 8);
  const Cluster& cluster = machine.cluster;
  EXPECT_EQ(cluster.devices(), 8);
  EXPECT_EQ(cluster.device.memory, 8 * kGiB);
  EXPECT_EQ(cluster.device.flops.f32, preset.device.flops.f32);
  ASSERT_EQ(cluster.links.size(), 1u);
  EXPECT_EQ(cluster.links[0].devices, 8);
  EXPECT_EQ(cluster.links[0].bandwidth, preset.links[0].bandwidth);
  EXPECT_THAT(machine.text(8 * kGiB), HasSubstr("8 cores for 8 ranks, 8.00 GiB for each"));
  EXPECT_THAT(machine.text(8 * kGiB), HasSubstr("oriel doctor --measure"));
  EXPECT_EQ(machine.comment(8 * kGiB),
            "# Searched for a machine with 8 cores for 8 ranks, 8.00 GiB for each; rates of "
            "--cluster cpu.\n");
}

// Whole cores, as oriel-run gives a rank threads.
TEST(ThisMachineTest, SeveralCoresForARank) {
  const Cluster one = host(8, 8).cluster, three = host(11, 3).cluster;
  EXPECT_EQ(*three.device.flops.f32, 3 * *one.device.flops.f32);
  EXPECT_EQ(three.device.memoryBandwidth, 3 * one.device.memoryBandwidth);
  EXPECT_EQ(three.device.efficiency.kernelFloor, one.device.efficiency.kernelFloor);
  EXPECT_EQ(three.links[0].bandwidth, one.links[0].bandwidth);
}

TEST(ThisMachineTest, RanksThatShareACore) {
  const Cluster one = host(8, 8).cluster, half = host(8, 16).cluster;
  EXPECT_EQ(half.devices(), 16);
  EXPECT_EQ(half.device.memory, 4 * kGiB);
  EXPECT_EQ(*half.device.flops.f32, *one.device.flops.f32 / 2);
  EXPECT_EQ(half.device.memoryBandwidth, one.device.memoryBandwidth / 2);
  EXPECT_EQ(half.device.efficiency.kernelFloor, 2 * one.device.efficiency.kernelFloor);
  EXPECT_EQ(half.links[0].bandwidth, one.links[0].bandwidth / 2);
  EXPECT_EQ(half.links[0].latency, 2 * one.links[0].latency);
}

TEST(ThisMachineTest, NoMemoryToGoBy) {
  expectRefused(hostMachine(8, 0, 8), "does not say what memory it has");
}

TEST(ThisMachineTest, GpusOfAPreset) {
  const std::tuple<const char*, int64_t, const char*> cases[] = {
      {"NVIDIA H100 80GB HBM3", 79 * kGiB, "h100"},
      {"NVIDIA A100-SXM4-40GB", 39 * kGiB, "a100-40"},
      {"NVIDIA A100-SXM4-80GB", 79 * kGiB, "a100-80"},
      {"Tesla V100-SXM2-32GB", 31 * kGiB, "v100"},
      {"NVIDIA H200", 140 * kGiB, "h200"},
      {"NVIDIA B200", 179 * kGiB, "b200"}};
  for (const auto& [name, memory, preset] : cases) {
    const absl::StatusOr<ThisMachine> machine = cudaMachine(gpus(8, name, memory), 4);
    ASSERT_TRUE(machine.ok()) << machine.status();
    EXPECT_EQ(machine->cluster.devices(), 4);
    EXPECT_EQ(machine->cluster.device.memory, memory - (int64_t{2} << 30));
    EXPECT_EQ(machine->cluster.device.name, findCluster(preset)->device.name);
    EXPECT_THAT(machine->text(memory),
                HasSubstr(std::string("rates are those of --cluster ") + preset));
    EXPECT_THAT(machine->comment(memory), HasSubstr(std::string("8 x ") + name + " for 4 ranks, "));
    EXPECT_EQ(machine->ratesOf, preset);
  }
  EXPECT_EQ(cudaMachine(gpus(3, "NVIDIA H200", 140 * kGiB), std::nullopt)->cluster.devices(), 3);
}

TEST(ThisMachineTest, GpusThatNoPresetHas) {
  for (const auto& [name, memory] : {std::pair("NVIDIA H100 PCIe", 79 * kGiB),
                                     {"NVIDIA A100-PCIE-40GB", 39 * kGiB},
                                     {"NVIDIA H100 NVL", 93 * kGiB},
                                     {"NVIDIA GH200 480GB", 95 * kGiB},
                                     {"Tesla V100-SXM2-16GB", 15 * kGiB},
                                     {"NVIDIA GeForce RTX 4090", 24 * kGiB}}) {
    expectRefused(cudaMachine(gpus(2, name, memory), 2), name);
  }
  expectRefused(cudaMachine(gpus(2, "NVIDIA H200", 140 * kGiB), 4),
                "there are 4 ranks, but this machine has 2 GPUs");
  std::vector<runtime::CudaDevice> mixed = gpus(2, "NVIDIA H200", 140 * kGiB);
  mixed[1].name = "NVIDIA B200";
  expectRefused(cudaMachine(mixed, 2), "differ");
}

}  // namespace
}  // namespace oriel::driver
