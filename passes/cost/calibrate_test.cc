#include "passes/cost/calibrate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace oriel {
namespace {

using ::testing::HasSubstr;

// Of a machine that is as the model says.
MachineMeasurements measure(const Cluster& cluster) {
  const Efficiency& efficiency = cluster.device.efficiency;
  const DeviceRates rates = cluster.device.rates();
  const auto floor = [&](double seconds) { return std::max(seconds, efficiency.kernelFloor); };
  MachineMeasurements measured;
  measured.ranks = cluster.devicesPerNode;
  measured.memory = cluster.device.memory * measured.ranks;
  for (const int64_t rows : {16, 64, 512}) {
    for (const int64_t depth : {16, 256, 1024}) {
      const MatrixProduct product{1, rows, 256, depth, true, 4, 4};
      measured.products.push_back({product, floor(productSeconds(efficiency, rates, product))});
    }
  }
  for (const int64_t depth : {16, 64}) {
    for (const bool backward : {false, true}) {
      AttentionWork work{1, 8, 8, 256, 256, depth, depth, true, backward, true, 4};
      measured.attention.push_back({work, floor(attentionSeconds(efficiency, rates, work))});
    }
  }
  for (const double bytes : {1e3, 1e5, 1e6, 1e8}) {
    measured.bytes.push_back({bytes, floor(memorySeconds(efficiency, rates, bytes))});
  }
  for (const int64_t ranks : {2, 4}) {
    std::vector<int64_t> group(static_cast<size_t>(ranks));
    std::iota(group.begin(), group.end(), 0);
    for (const double bytes : {4.0, 1e4, 1e6}) {
      measured.collectives.push_back(
          {LinkUse::kAllReduce, ranks, bytes,
           linkSeconds(cluster.links, group, LinkUse::kAllReduce, bytes)});
    }
  }
  measured.overlaps.push_back({3e-3, 1e-3, 4e-3 - 1e-3 * efficiency.overlap});
  return measured;
}

constexpr char kMachine[] = R"(
devices_per_node: 4
device:
  memory: 2 GiB
  memory_bandwidth: 6 GB/s
  flops: {f32: 50 GFLOP/s}
  efficiency:
    processors: 1
    products: {half: 1, float: 1, depth_latency: 30, tile: 0.125}
    attention:
      rows: 64
      forward: {share: 0.3, score: 80, key_latency: 20}
      backward: {share: 0.2, score: 120, key_latency: 20}
    memory: {share: 1, ramp: 1 us}
    kernel_floor: 1.5 us
    overlap: 0.25
links: [{bandwidth: 2 GB/s, latency: 20 us, reached: 1}]
)";

TEST(CalibrateTest, FindsTheMachineThatWasMeasured) {
  const absl::StatusOr<Cluster> machine = readClusterText(kMachine, "m.yaml");
  ASSERT_TRUE(machine.ok()) << machine.status();
  const MachineMeasurements measured = measure(*machine);
  const absl::StatusOr<Cluster> found = calibrate(measured);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->devices(), 4);
  EXPECT_EQ(found->device.memory, int64_t{2} << 30);
  EXPECT_NEAR(found->device.memoryBandwidth / 6e9, 1, 0.1);
  EXPECT_NEAR(*found->device.flops.f32 / 50e9, 1, 0.1);
  EXPECT_FALSE(found->device.flops.bf16.has_value());
  EXPECT_NEAR(found->links[0].bandwidth / 2e9, 1, 0.1);
  EXPECT_NEAR(found->links[0].latency / 20e-6, 1, 0.1);
  EXPECT_NEAR(found->device.efficiency.overlap, 0.25, 1e-9);
  const MachineMeasurements again = measure(*found);
  for (size_t i = 0; i < measured.products.size(); ++i) {
    EXPECT_NEAR(again.products[i].seconds / measured.products[i].seconds, 1, 0.15) << i;
  }
  for (size_t i = 0; i < measured.attention.size(); ++i) {
    EXPECT_NEAR(again.attention[i].seconds / measured.attention[i].seconds, 1, 0.15) << i;
  }
}

TEST(CalibrateTest, ItsFileReadsBack) {
  const Cluster machine = *readClusterText(kMachine, "m.yaml");
  const absl::StatusOr<Cluster> again = readClusterText(clusterText(machine), "again.yaml");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(clusterText(*again), clusterText(machine));
  EXPECT_EQ(again->device.efficiency.tile, 0.125);
  EXPECT_EQ(again->device.efficiency.backward.score, 120);
  EXPECT_EQ(again->device.efficiency.overlap, 0.25);
}

TEST(CalibrateTest, ReadsMeasurements) {
  const absl::StatusOr<MachineMeasurements> measured = readMeasurements(
      R"({"measure": "machine", "ranks": 2, "memory": 8000000}
{"measure": "product", "rows": 8, "columns": 16, "depth": 32, "element_bytes": 2, "seconds": 1e-6}
{"measure": "bytes", "bytes": 1000, "seconds": 2e-6}
{"measure": "attention", "batch": 1, "heads": 2, "sequence": 64, "depth": 16, "causal": 1, "backward": 0, "seconds": 3e-6}
{"measure": "all_reduce", "ranks": 2, "sent_bytes": 4096, "seconds": 1.5e-05}
{"measure": "overlap", "computing": 2e-3, "communicating": 1e-3, "seconds": 2.5e-3}
)");
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_EQ(measured->ranks, 2);
  ASSERT_EQ(measured->products.size(), 1u);
  EXPECT_EQ(measured->products[0].product.depth, 32);
  EXPECT_FALSE(measured->products[0].product.wide);
  EXPECT_TRUE(measured->attention[0].work.causal);
  EXPECT_EQ(measured->collectives[0].use, LinkUse::kAllReduce);
  EXPECT_DOUBLE_EQ(measured->collectives[0].seconds, 1.5e-5);
  EXPECT_DOUBLE_EQ(measured->overlaps.at(0).communicating, 1e-3);
  EXPECT_DOUBLE_EQ(measured->overlaps.at(0).both, 2.5e-3);

  EXPECT_THAT(
      std::string(readMeasurements("{\"measure\": \"heat\", \"seconds\": 1}").status().message()),
      HasSubstr("'heat' is no measurement"));
  EXPECT_THAT(std::string(readMeasurements("{\"measure\": \"bytes\"}").status().message()),
              HasSubstr("needs its 'seconds'"));
  EXPECT_FALSE(readMeasurements("oops").ok());
  EXPECT_FALSE(calibrate(MachineMeasurements()).ok());
}

}  // namespace
}  // namespace oriel
