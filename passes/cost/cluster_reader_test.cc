#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "passes/config/reader_testing.h"
#include "passes/cost/cluster.h"

namespace oriel {
namespace {

using ::testing::HasSubstr;

constexpr char kText[] = R"(
nodes: 4
devices_per_node: 8
device: {name: X, memory: 80 GiB, memory_bandwidth: 3.35 TB/s, flops: {bf16: 989 TFLOP/s, f32: 67 TFLOP/s}}
links:
  - {name: NVLink, devices: 8, bandwidth: 450 GB/s, latency: 5 us}
  - {bandwidth: 400 Gb/s, latency: 0.01 ms, oversubscription: 2}
)";

TEST(ClusterReaderTest, ReadsUnits) {
  const absl::StatusOr<Cluster> cluster = readClusterText(kText, "c.yaml");
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ(cluster->devices(), 32);
  EXPECT_EQ(cluster->device.memory, int64_t{80} << 30);
  EXPECT_DOUBLE_EQ(cluster->device.memoryBandwidth, 3.35e12);
  EXPECT_DOUBLE_EQ(*cluster->device.flops.bf16, 989e12);
  EXPECT_FALSE(cluster->device.flops.f16.has_value());
  ASSERT_EQ(cluster->links.size(), 2u);
  EXPECT_EQ(cluster->links[1].devices, 32);
  EXPECT_DOUBLE_EQ(cluster->links[1].bandwidth, 50e9);
  EXPECT_DOUBLE_EQ(cluster->links[1].usableBandwidth(), 25e9);
  EXPECT_DOUBLE_EQ(cluster->links[1].latency, 1e-5);
}

TEST(ClusterReaderTest, NothingIsReserved) {
  std::string text = kText;
  text.insert(text.find(", memory_bandwidth"), ", reserved: 0 GiB");
  const absl::StatusOr<Cluster> cluster = readClusterText(text, "c.yaml");
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ(cluster->device.reserved, 0);
}

TEST(ClusterReaderTest, ReservedMemoryIsNobodys) {
  std::string text = kText;
  text.insert(text.find(", memory_bandwidth"), ", reserved: 2 GiB");
  const absl::StatusOr<Cluster> cluster = readClusterText(text, "c.yaml");
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ(cluster->device.memory, int64_t{78} << 30);
}

TEST(ClusterReaderTest, SaysWhatIsWrongAndWhere) {
  const struct {
    const char* old;
    const char* now;
    const char* message;
  } cases[] = {
      {"nodes: 4", "nodes: 0", "c.yaml:2:8: 'nodes'"},
      {"nodes: 4", "node: 4", "did you mean 'nodes'"},
      {"memory: 80 GiB", "memory: lots", "'device.memory' must be the bytes"},
      {"memory: 80 GiB", "memory: 80 GiB, reserved: some", "'device.reserved' must be bytes"},
      {"memory: 80 GiB", "memory: 80 GiB, reserved: 80 GiB", "leaves nothing of 'device.memory'"},
      {"3.35 TB/s", "3.35", "'device.memory_bandwidth' must be a number above 0 with a unit"},
      {"989 TFLOP/s", "0 TFLOP/s", "'device.flops.bf16' must be a number above 0"},
      {", f32: 67 TFLOP/s", "", "f32"},
      {"latency: 5 us", "latency: -5 us", "'links[0].latency' must be a number above 0"},
      {", devices: 8", "", "'links[0].devices' is missing"},
      {"oversubscription: 2", "oversubscription: 0.5",
       "'links[1].oversubscription' must be 1 or more"},
      {"oversubscription: 2", "pair: 500 Gb/s",
       "'links[1].pair' must be at most the level's bandwidth"},
      {"{bandwidth: 400", "{devices: 12, bandwidth: 400", "must be a multiple of the 8 devices"},
      {", devices: 8", ", devices: 3", "'links[0].devices' must divide the 8 devices of a node"},
      {"devices_per_node: 8", "devices_per_node: 0", "'devices_per_node'"},
      {"{bandwidth: 400", "{devices: 16, bandwidth: 400",
       "the last level joins 16 devices, but there are 32"},
      {"devices_per_node: 8\n", "", "devices_per_node"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(refusalOf(readClusterText(replaced(kText, c.old, c.now), "c.yaml")),
                HasSubstr(c.message));
  }
  EXPECT_THAT(std::string(readClusterText("[", "c.yaml").status().message()),
              HasSubstr("c.yaml:1:"));
  EXPECT_THAT(std::string(readClusterText("3", "c.yaml").status().message()),
              HasSubstr("a mapping"));
}

TEST(ClusterReaderTest, EveryPresetIsSound) {
  ASSERT_GE(clusterPresets().size(), 7u);
  for (const std::string& name : clusterPresets()) {
    const absl::StatusOr<Cluster> cluster = findCluster(name);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    EXPECT_FALSE(cluster->device.name.empty());
    const absl::StatusOr<Cluster> four = findCluster(name + ":4");
    ASSERT_TRUE(four.ok()) << four.status();
    EXPECT_EQ(four->devices(), 4 * cluster->devicesPerNode);
    EXPECT_EQ(four->links.back().devices, four->devices());
  }
}

// The last level joins more than there are, or all of them.
TEST(ClusterReaderTest, OtherNodes) {
  const absl::StatusOr<Cluster> four = readClusterText(R"(
nodes: 4
devices_per_node: 2
device: {memory: 1 GiB, memory_bandwidth: 1 GB/s, flops: {f32: 1 GFLOP/s}}
links:
  - {devices: 2, bandwidth: 1 GB/s, latency: 1 us}
  - {devices: 16, bandwidth: 1 GB/s, latency: 1 us}
)",
                                                       "c.yaml");
  ASSERT_TRUE(four.ok()) << four.status();
  const Cluster two = four->withNodes(2), many = four->withNodes(32);
  EXPECT_EQ(two.devices(), 4);
  EXPECT_EQ(two.links.back().devices, 16);
  EXPECT_EQ(two.name, "c.yaml");
  EXPECT_EQ(many.devices(), 64);
  EXPECT_EQ(many.links.front().devices, 2);
  EXPECT_EQ(many.links.back().devices, 64);
}

TEST(ClusterReaderTest, NamesThatAreNotThere) {
  EXPECT_EQ(findCluster("h10").status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(findCluster("h10").status().message()), HasSubstr("did you mean 'h100'"));
  EXPECT_THAT(std::string(findCluster("h100:0").status().message()), HasSubstr("h100:4"));
  EXPECT_EQ(findCluster("no/such.yaml").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace oriel
