#include "passes/emit/emit.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/exec/exec.h"
#include "ir/oriel/oriel.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"

namespace oriel {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

constexpr char kModule[] = R"mlir(
module attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = ["a0"]}} {
  oriel.parameter @p0 {onnx_name = "layer.weight", type = tensor<2xf32>, trainable = true}
  exec.program @ranks attributes {arena_bytes = 384 : i64, first_rank = 0 : i64, rank_count = 2 : i64} {
    exec.buffer @b0 : tensor<3x2xf32> {kind = "input", offset = 0 : i64, ref = "x", sharding = #oriel.sharding<[{a0}, {}]>}
    exec.buffer @b1 : tensor<2xf32> {kind = "parameter", offset = 64 : i64, ref = "p0"}
    exec.buffer @b2 : tensor<2xi1> {kind = "constant", offset = 128 : i64, value = dense<[true, false]> : tensor<2xi1>}
    exec.buffer @b3 : tensor<2xf32> {kind = "gradient", offset = 192 : i64, ref = "p0", sharding = #oriel.sharding<[{}] sum {a0}>}
    exec.buffer @b4 : tensor<f32> {kind = "output", offset = 256 : i64, ref = "loss_sum", sharding = #oriel.sharding<[] max {a0}>}
    exec.buffer @b5 : tensor<f32> {kind = "output", offset = 320 : i64, ref = "loss"}
    exec.segment @forward {
      exec.launch "pad" [@b0, @b1] -> [@b1] {flag = true, value = 0.5 : f64, kind = "k", dims = array<i64: 1, 2>} from "oriel.pad" loc("node"("module"))
      exec.collective "all_reduce" "sum" ["a0"] [@b1] -> [@b1] from "oriel.all_reduce"
      exec.copy [@b1] -> [@b1] from "return"
      exec.collective "reduce_scatter" "max" ["a0"] [@b0] -> [@b1] from "oriel.reduce_scatter" {split_dims = array<i64: 1>}
      exec.collective "all_to_all" ["a0"] [@b0] -> [@b1] from "oriel.all_to_all" {split_dims = array<i64: 1>, concat_dims = array<i64: 2>}
      exec.collective "all_gather" ["a0"] [@b1] -> [@b0] from "oriel.all_gather" {concat_dims = array<i64: 1>, stream = 2 : i64}
      exec.wait 5
      exec.slice 1 ["a0"] [@b0] -> [@b1] from "oriel.slice_local"
    }
    exec.segment @update {}
    exec.run @forward {microbatch = 0 : i64}
    exec.run @forward {microbatch = 1 : i64}
    exec.run @update {microbatch = 0 : i64}
  }
}
)mlir";

class EmitTest : public ::testing::Test {
 protected:
  EmitTest() {
    mlir::DialectRegistry registry;
    registry.insert<exec::ExecDialect, ir::OrielDialect, mlir::func::FuncDialect>();
    context_.appendDialectRegistry(registry);
    context_.loadAllAvailableDialects();
    recipe_.globalBatch = 12;
    recipe_.microBatch = 3;
    recipe_.inputs = {{"labels", "int64", {3}}};
    recipe_.loss.labels = "labels";
    recipe_.schedule.kind = Recipe::ScheduleKind::kCosine;
    options_.weightsFile = "w.safetensors";
  }

  mlir::FailureOr<plan::Plan> emit(const std::string& text) {
    module_ = mlir::parseSourceString<mlir::ModuleOp>(text, &context_);
    EXPECT_TRUE(module_);
    mlir::ScopedDiagnosticHandler handler(&context_, [&](mlir::Diagnostic& diagnostic) {
      error_ += diagnostic.str();
      return mlir::success();
    });
    return emitPlan(*module_, recipe_, options_);
  }

  mlir::MLIRContext context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  Recipe recipe_;
  EmitOptions options_;
  std::string error_;
};

TEST_F(EmitTest, ParametersKeepTheirOnnxNames) {
  auto plan = emit(kModule);
  ASSERT_TRUE(succeeded(plan)) << error_;
  ASSERT_EQ(plan->parameters_size(), 1);
  EXPECT_EQ(plan->parameters(0).name(), "layer.weight");
  EXPECT_TRUE(plan->parameters(0).trainable());
  EXPECT_EQ(plan->parameters(0).initial().file(), "w.safetensors");
  EXPECT_EQ(plan->programs(0).buffers(1).ref(), "layer.weight");
}

TEST_F(EmitTest, InitRuleTakesTheFilesPlace) {
  recipe_.init.seed = 5;
  recipe_.init.rules = {{{"*.weight"}, {Recipe::Distribution::Kind::kNormal, 0.5, 0.02}}};
  auto plan = emit(kModule);
  ASSERT_TRUE(succeeded(plan)) << error_;
  const plan::InitialValue& initial = plan->parameters(0).initial();
  EXPECT_EQ(initial.file(), "");
  EXPECT_EQ(initial.seed(), 5u);
  EXPECT_EQ(initial.normal().mean(), 0.5);
  EXPECT_EQ(initial.normal().deviation(), 0.02);
}

TEST_F(EmitTest, DeviceIsInThePlan) {
  auto plan = emit(kModule);
  ASSERT_TRUE(succeeded(plan)) << error_;
  EXPECT_FALSE(plan->has_device());  // the host
  options_.device.set_kind("cuda");
  options_.device.add_architectures("sm_90");
  plan = emit(kModule);
  ASSERT_TRUE(succeeded(plan)) << error_;
  EXPECT_EQ(plan->device().kind(), "cuda");
  EXPECT_THAT(plan->device().architectures(), ElementsAre("sm_90"));
}

TEST_F(EmitTest, KernelThatTheDeviceLacks) {
  std::string module = kModule;
  module.replace(module.find("\"pad\""), 5, "\"acme_snake\"");
  EXPECT_TRUE(succeeded(emit(module))) << error_;
  options_.device.set_kind("cuda");
  EXPECT_TRUE(failed(emit(module)));
  EXPECT_THAT(error_, HasSubstr("the op oriel.pad needs the kernel \"acme_snake\", which Oriel has "
                                "for the host only; compile with --device host"));
}

TEST_F(EmitTest, BuffersHaveShardings) {
  auto plan = emit(kModule);
  ASSERT_TRUE(succeeded(plan)) << error_;
  const plan::Buffer& input = plan->programs(0).buffers(0);
  EXPECT_THAT(input.local().shape(), ElementsAre(3, 2));
  EXPECT_THAT(input.global_shape(), ElementsAre(6, 2));
  ASSERT_EQ(input.sharding().dims_size(), 2);
  EXPECT_THAT(input.sharding().dims(0).axes(), ElementsAre("a0"));
  EXPECT_EQ(plan->inputs(0).name(), "x");
  const plan::Sharding& gradient = plan->programs(0).buffers(3).sharding();
  EXPECT_THAT(gradient.partial(), ElementsAre("a0"));
  EXPECT_EQ(gradient.dims_size(), 0);
  EXPECT_THAT(plan->programs(0).buffers(4).sharding().partial_max(), ElementsAre("a0"));
  EXPECT_FALSE(plan->programs(0).buffers(5).has_sharding());
}

TEST_F(EmitTest, ScheduleIsTheRunsInOrder) {
  auto plan = emit(kModule);
  ASSERT_TRUE(succeeded(plan)) << error_;
  EXPECT_EQ(plan->training().microbatches(), 2);
  std::string order;
  for (const plan::ScheduleEntry& entry : plan->programs(0).schedule()) {
    order += entry.segment() + std::to_string(entry.microbatch()) + " ";
  }
  EXPECT_EQ(order, "forward0 forward1 update0 ");
}

TEST_F(EmitTest, LaunchKeepsBuffersAttributesAndLocation) {
  auto plan = emit(kModule);
  ASSERT_TRUE(succeeded(plan)) << error_;
  const plan::Instruction& instruction = plan->programs(0).segments(0).instructions(0);
  EXPECT_EQ(instruction.location(), "node [module]");
  EXPECT_EQ(instruction.op(), "oriel.pad");
  const plan::Launch& launch = instruction.launch();
  EXPECT_EQ(launch.kernel(), "pad");
  EXPECT_THAT(launch.operands(), ElementsAre(0, 1));
  EXPECT_THAT(launch.results(), ElementsAre(1));
  EXPECT_EQ(launch.attributes().at("flag").i(), 1);
  EXPECT_EQ(launch.attributes().at("value").f(), 0.5);
  EXPECT_EQ(launch.attributes().at("kind").s(), "k");
  EXPECT_THAT(launch.attributes().at("dims").ints().values(), ElementsAre(1, 2));
}

TEST_F(EmitTest, CollectivesKeepKindReductionAndDims) {
  auto plan = emit(kModule);
  ASSERT_TRUE(succeeded(plan)) << error_;
  const plan::Segment& segment = plan->programs(0).segments(0);
  auto expect = [&](int index, plan::Collective::Kind kind, plan::Collective::Reduction reduction,
                    std::vector<int> splitDims, std::vector<int> concatDims) {
    const plan::Collective& collective = segment.instructions(index).collective();
    EXPECT_EQ(collective.kind(), kind);
    EXPECT_EQ(collective.reduction(), reduction);
    EXPECT_THAT(collective.split_dims(), ElementsAreArray(splitDims));
    EXPECT_THAT(collective.concat_dims(), ElementsAreArray(concatDims));
    EXPECT_THAT(collective.axes(), ElementsAre("a0"));
  };
  expect(1, plan::Collective::ALL_REDUCE, plan::Collective::SUM, {}, {});
  expect(3, plan::Collective::REDUCE_SCATTER, plan::Collective::MAX, {1}, {});
  expect(4, plan::Collective::ALL_TO_ALL, plan::Collective::REDUCTION_UNSPECIFIED, {1}, {2});
  expect(5, plan::Collective::ALL_GATHER, plan::Collective::REDUCTION_UNSPECIFIED, {}, {1});
  EXPECT_EQ(segment.instructions(5).op(), "oriel.all_gather");
  EXPECT_EQ(segment.instructions(4).collective().stream(), 0);
  EXPECT_EQ(segment.instructions(5).collective().stream(), 2);
  ASSERT_TRUE(segment.instructions(6).has_wait());
  EXPECT_EQ(segment.instructions(6).wait().collective(), 5);
}

TEST_F(EmitTest, SliceKeepsDimAndAxes) {
  auto plan = emit(kModule);
  ASSERT_TRUE(succeeded(plan)) << error_;
  const plan::Slice& slice = plan->programs(0).segments(0).instructions(7).slice();
  EXPECT_EQ(slice.source(), 0);
  EXPECT_EQ(slice.target(), 1);
  EXPECT_EQ(slice.dim(), 1);
  EXPECT_THAT(slice.axes(), ElementsAre("a0"));
}

TEST_F(EmitTest, ConstantBooleansAreBytes) {
  auto plan = emit(kModule);
  ASSERT_TRUE(succeeded(plan)) << error_;
  EXPECT_EQ(plan->programs(0).buffers(2).data(), std::string("\1\0", 2));
}

TEST_F(EmitTest, InputWithoutTheMicroBatchIsAnError) {
  recipe_.microBatch = 2;
  EXPECT_TRUE(failed(emit(kModule)));
  EXPECT_THAT(error_, HasSubstr("the input 'x' has no first dimension of 4 samples"));
}

// A module of one program with this body.
std::string programOf(const std::string& body) {
  return R"mlir(module attributes {oriel.grid = {}, oriel.mesh = {}} {
    exec.program @ranks attributes {arena_bytes = 64 : i64, first_rank = 0 : i64, rank_count = 1 : i64} {)mlir" +
         body + "}}";
}

TEST_F(EmitTest, UnknownKindOfBufferIsAnError) {
  EXPECT_TRUE(failed(
      emit(programOf("exec.buffer @b0 : tensor<3xf32> {kind = \"weight\", offset = 0 : i64}"))));
  EXPECT_THAT(error_, HasSubstr("has the unknown kind weight"));
}

TEST_F(EmitTest, OpThatIsNoInstructionIsAnError) {
  EXPECT_TRUE(failed(emit(programOf(
      "exec.segment @forward { %0 = oriel.iota {dim = 0 : i64} : () -> tensor<3xi64> }"))));
  EXPECT_THAT(error_, HasSubstr("is no instruction of a plan"));
}

TEST_F(EmitTest, ModuleThatIsNotLoweredIsAnError) {
  EXPECT_TRUE(failed(emit("module attributes {oriel.grid = {}, oriel.mesh = {}} {}")));
  EXPECT_THAT(error_, HasSubstr("has no exec.program"));
}

}  // namespace
}  // namespace oriel
