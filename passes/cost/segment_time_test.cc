#include "passes/cost/segment_time.h"

#include "gtest/gtest.h"
#include "ir/oriel/oriel.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "passes/cost/collective_time.h"
#include "passes/cost/op_time.h"

namespace oriel {
namespace {

// What is between two sums over ranks and what waits for them; two runs in a step.
std::string program(const std::string& first, const std::string& second, const std::string& wait,
                    const std::string& attributes = "") {
  return R"mlir(
module attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {},)mlir" +
         attributes + R"mlir(
                   oriel.schedule = [["forward", 0], ["forward", 1]]} {
  func.func @forward(%x: tensor<4000000xf32> {oriel.kind = "input", oriel.ref = "x"},
                     %y: tensor<1000xf32> {oriel.kind = "input", oriel.ref = "y"}) {
    %0 = oriel.all_reduce %y {axes = ["a0"], reduction = "sum")mlir" +
         first + R"mlir(} : (tensor<1000xf32>) -> tensor<1000xf32>
    %1 = oriel.all_reduce %y {axes = ["a0"], reduction = "sum")mlir" +
         second + R"mlir(} : (tensor<1000xf32>) -> tensor<1000xf32>
    %2 = oriel.exp %x : (tensor<4000000xf32>) -> tensor<4000000xf32>
    )mlir" +
         wait + R"mlir(
    return
  }
})mlir";
}

// With two devices on a slow link.
std::string cluster(const std::string& memoryBandwidth) {
  return " oriel.cluster = {half_flops = 1.0e15, float_flops = 1.0e15, memory_bandwidth = " +
         memoryBandwidth + ", links = [{devices = 2 : i64, bandwidth = 1.0e9, latency = 1.0e-3}]},";
}

class SegmentTimeTest : public ::testing::Test {
 protected:
  SegmentTimeTest() {
    mlir::DialectRegistry registry;
    registry.insert<ir::OrielDialect, mlir::func::FuncDialect>();
    context_.appendDialectRegistry(registry);
    context_.loadAllAvailableDialects();
  }

  PredictedTime timeOf(const std::string& text) {
    mlir::OwningOpRef<mlir::ModuleOp> module =
        mlir::parseSourceString<mlir::ModuleOp>(text, &context_);
    EXPECT_TRUE(module) << text;
    if (!module) return {};
    kernels_ = 0;
    auto segment = *module->getOps<mlir::func::FuncOp>().begin();
    for (mlir::Operation& op : segment.getBody().front()) {
      if (llvm::isa<ir::CollectiveOpInterface>(op)) continue;
      kernels_ += OpTimes(&op).seconds(&op);
    }
    mlir::FailureOr<PredictedTime> time = predictedTime(segment);
    mlir::FailureOr<PredictedTime> step = predictedStepTime(*module);
    EXPECT_TRUE(succeeded(time) && succeeded(step));
    EXPECT_DOUBLE_EQ(step->all(), 2 * time->all());
    return *time;
  }

  mlir::MLIRContext context_;
  double kernels_ = 0;
};

TEST_F(SegmentTimeTest, WithoutAClusterTimesAreThoseOfTheDefault) {
  const Cluster& cluster = defaultCluster();
  const PredictedTime time = timeOf(program("", "", ""));
  EXPECT_DOUBLE_EQ(time.computing,
                   memorySeconds(cluster.device.efficiency, cluster.device.rates(), 32e6));
  EXPECT_DOUBLE_EQ(time.computing, kernels_);
  EXPECT_DOUBLE_EQ(time.waiting, 2 * linkSeconds(cluster.links, {0, 1}, LinkUse::kAllReduce, 4000));
  // Of any number of nodes.
  EXPECT_GT(linkSeconds(cluster.links, {0, 1000000}, LinkUse::kTransfer, 4000), 0);
}

TEST_F(SegmentTimeTest, WhatIsStartedRunsBesideKernels) {
  const std::string each =
      "%3 = oriel.wait %0 : (tensor<1000xf32>) -> tensor<1000xf32>\n"
      "%4 = oriel.wait %1 : (tensor<1000xf32>) -> tensor<1000xf32>";
  const std::string stream = ", oriel.stream = 1 : i64";
  LinkLevel level;
  level.devices = 2;
  level.bandwidth = 1e9;
  level.latency = 1e-3;
  const auto seconds = [&](double bytes) {
    return linkSeconds({level}, {0, 1}, LinkUse::kAllReduce, bytes);
  };
  const std::string slow = cluster("1.0e12");
  PredictedTime time = timeOf(program(stream, stream, each, slow));
  ASSERT_LT(kernels_, 2 * seconds(4000));  // one behind the other on their stream
  EXPECT_DOUBLE_EQ(time.computing, kernels_);
  EXPECT_DOUBLE_EQ(time.all(), 2 * seconds(4000));
  const std::string both =
      "%3:2 = oriel.wait %0, %1 : (tensor<1000xf32>, tensor<1000xf32>) -> "
      "(tensor<1000xf32>, tensor<1000xf32>)";
  const std::string bucket = stream + ", oriel.bucket = 0 : i64";
  time = timeOf(program(bucket, bucket, both, slow));
  EXPECT_DOUBLE_EQ(time.all(), std::max(time.computing, seconds(8000)));
}

TEST_F(SegmentTimeTest, TimesAreThoseOfTheCluster) {
  // exp reads and writes 16 MB each: but for the ramp twice as fast as with half the bandwidth.
  const PredictedTime fast = timeOf(program("", "", "", cluster("1.0e12")));
  const PredictedTime slow = timeOf(program("", "", "", cluster("0.5e12")));
  const Efficiency generic;
  EXPECT_NEAR(slow.computing - generic.memoryRamp, 2 * (fast.computing - generic.memoryRamp),
              1e-12);
  EXPECT_NEAR(fast.computing, generic.memoryRamp + 32e6 / (generic.memoryShare * 1e12), 1e-12);
  EXPECT_DOUBLE_EQ(slow.waiting, fast.waiting);
  EXPECT_GT(fast.waiting, 4e-3);  // two steps each
}

std::vector<LinkLevel> nodesOfTwo() {
  LinkLevel node, network;
  node.devices = 2;
  node.bandwidth = 100e9;
  network.devices = 8;
  network.bandwidth = 1e9;
  return {node, network};
}

TEST(TransferTimeTest, IsThatOfTheFarthestPair) {
  constexpr double kBytes = 1e9;
  const std::vector<LinkLevel> levels = nodesOfTwo();
  const double near = linkSeconds(levels, {0, 1}, LinkUse::kTransfer, kBytes);
  const double far = linkSeconds(levels, {0, 2}, LinkUse::kTransfer, kBytes);
  EXPECT_GT(far, 50 * near);
  // Two stages of two ranks: one behind the other, and side by side.
  EXPECT_EQ(predictedTransferSeconds(levels, {}, 0, 2, 2, kBytes), far);
  EXPECT_EQ(predictedTransferSeconds(levels, {2, 2, 1}, 0, 2, 2, kBytes), near);
  EXPECT_EQ(predictedTransferSeconds(levels, {2, 2, 1}, 2, 0, 2, kBytes), near);
  // Of three stages the first pair is on a node, the second on two.
  EXPECT_EQ(predictedTransferSeconds(levels, {3, 2, 1}, 0, 2, 1, kBytes), near);
  EXPECT_EQ(predictedTransferSeconds(levels, {3, 2, 1}, 0, 2, 2, kBytes), far);
  // So are they of stages of three, one behind the other, on nodes of four.
  std::vector<LinkLevel> nodes = nodesOfTwo();
  nodes.front().devices = 4;
  EXPECT_EQ(predictedTransferSeconds(nodes, {}, 0, 3, 1, kBytes), near);
  EXPECT_EQ(predictedTransferSeconds(nodes, {}, 0, 3, 3, kBytes), far);
}

// By its place, a data-parallel group is on two nodes.
TEST_F(SegmentTimeTest, GroupsAreWhereTheirRanksAre) {
  const std::string cluster = R"mlir(
      oriel.cluster = {half_flops = 1.0e15, float_flops = 1.0e15, memory_bandwidth = 1.0e12, links = [{devices = 2 : i64, bandwidth = 1.0e+11 : f64, latency = 1.0e-6 : f64},
                                {devices = 4 : i64, bandwidth = 1.0e+9 : f64, latency = 1.0e-5 : f64}]},)mlir";
  const auto waits = [&](const std::string& more) {
    return timeOf(program("", "", "", cluster + more)).waiting;
  };
  const double near = waits("");
  EXPECT_GT(near, 0);
  EXPECT_EQ(waits("oriel.placement = {grids = 2 : i64, ranks = 2 : i64, block = 2 : i64},"), near);
  EXPECT_GT(waits("oriel.placement = {grids = 2 : i64, ranks = 2 : i64, block = 1 : i64},"),
            5 * near);
}

}  // namespace
}  // namespace oriel
