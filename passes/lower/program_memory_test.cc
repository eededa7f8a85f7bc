#include "passes/lower/program_memory.h"

#include "gtest/gtest.h"
#include "mlir/Parser/Parser.h"

namespace oriel {
namespace {

// Values of 1000 floats: 4000 bytes, which take 4032.
constexpr int64_t kValue = 4032;

// At the peak, in @backward: parameter, gradient, input, stash, and the gradient's summand before
// and after its reduction, which is in place.
constexpr char kProgram[] = R"mlir(
module attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = ["a0"]}} {
  func.func @forward(%x: tensor<1000xf32> {oriel.kind = "input", oriel.ref = "x"},
                     %p: tensor<1000xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
      -> (tensor<1000xf32> {oriel.kind = "stash", oriel.ref = "s0"}) {
    %0 = oriel.mul %x, %p : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
    %1 = oriel.exp %0 : (tensor<1000xf32>) -> tensor<1000xf32>
    return %1 : tensor<1000xf32>
  }
  func.func @backward(%s: tensor<1000xf32> {oriel.kind = "stash", oriel.ref = "s0"},
                      %g: tensor<1000xf32> {oriel.kind = "gradient", oriel.ref = "p0"})
      -> (tensor<1000xf32> {oriel.kind = "gradient", oriel.ref = "p0"}) {
    %0 = oriel.exp %s : (tensor<1000xf32>) -> tensor<1000xf32>
    %1 = oriel.mul %s, %0 : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
    %2 = oriel.all_reduce %1 {axes = ["a0"], reduction = "sum"} : (tensor<1000xf32>) -> tensor<1000xf32>
    %3 = oriel.add %g, %2 : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
    return %3 : tensor<1000xf32>
  }
}
)mlir";

// Two microbatches are in flight: the first backward comes behind the second forward.
constexpr char kPipeline[] = R"mlir(
module {
  module @grid0 attributes {oriel.grid = {}, oriel.mesh = {},
      oriel.schedule = [["forward.0", 0], ["forward.0", 1], ["backward.0", 0], ["backward.0", 1]]} {
    func.func @forward.0(%x: tensor<1000xf32> {oriel.kind = "input", oriel.ref = "x"})
        -> (tensor<1000xf32> {oriel.kind = "stash", oriel.ref = "s0"}) {
      %0 = oriel.exp %x : (tensor<1000xf32>) -> tensor<1000xf32>
      return %0 : tensor<1000xf32>
    }
    func.func @backward.0(%s: tensor<1000xf32> {oriel.kind = "stash", oriel.ref = "s0"},
                          %g: tensor<1000xf32> {oriel.kind = "gradient", oriel.ref = "p0"})
        -> (tensor<1000xf32> {oriel.kind = "gradient", oriel.ref = "p0"}) {
      %0 = oriel.add %g, %s : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
      return %0 : tensor<1000xf32>
    }
  }
}
)mlir";

class ProgramMemoryTest : public ::testing::Test {
 protected:
  ProgramMemoryTest() {
    mlir::DialectRegistry registry;
    registry.insert<ir::OrielDialect, mlir::func::FuncDialect>();
    context_.appendDialectRegistry(registry);
    context_.loadAllAvailableDialects();
  }

  mlir::FailureOr<ProgramMemory> of(const char* text) {
    module_ = mlir::parseSourceString<mlir::ModuleOp>(text, &context_);
    EXPECT_TRUE(module_);
    return ProgramMemory::of(ir::programsOf(*module_).front());
  }

  mlir::MLIRContext context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
};

TEST_F(ProgramMemoryTest, PartsAddUpToThePeak) {
  auto memory = of(kProgram);
  ASSERT_TRUE(succeeded(memory));
  const MemoryPeak peak = memory->peak();
  EXPECT_EQ(peak.of(MemoryUse::kParameters), kValue);
  EXPECT_EQ(peak.of(MemoryUse::kGradients), kValue);
  EXPECT_EQ(peak.of(MemoryUse::kOptimizerState), 0);
  EXPECT_EQ(peak.of(MemoryUse::kStash), kValue);
  EXPECT_EQ(peak.of(MemoryUse::kOther), kValue);
  EXPECT_EQ(peak.of(MemoryUse::kCommunication) + peak.of(MemoryUse::kTemporaries), kValue);
  EXPECT_EQ(peak.bytes, 5 * kValue);
  EXPECT_EQ(peak.inUse.size(), 5u);
}

TEST_F(ProgramMemoryTest, ArenaIsNoSmallerThanThePeak) {
  auto memory = of(kProgram);
  ASSERT_TRUE(succeeded(memory));
  const ArenaLayout arena = memory->place();
  EXPECT_EQ(arena.lowerBound, memory->peak().bytes);
  EXPECT_EQ(arena.bytes, arena.lowerBound);
  EXPECT_EQ(arena.offsets.size(), memory->assignment().storages().size());
}

TEST_F(ProgramMemoryTest, StashCountsForEachMicrobatchInFlight) {
  auto memory = of(kPipeline);
  ASSERT_TRUE(succeeded(memory));
  EXPECT_EQ(memory->peak().of(MemoryUse::kStash), 2 * kValue);
}

// What follows the stash in memory comes when the stash has been read.
TEST_F(ProgramMemoryTest, StashOfOneMicrobatchAtATimeSharesItsBytes) {
  auto memory = of(R"mlir(
module {
  module @grid0 attributes {oriel.grid = {}, oriel.mesh = {},
      oriel.schedule = [["forward.0", 0], ["backward.0", 0], ["forward.0", 1], ["backward.0", 1]]} {
    func.func @forward.0(%x: tensor<1000xf32> {oriel.kind = "input", oriel.ref = "x"})
        -> (tensor<1000xf32> {oriel.kind = "stash", oriel.ref = "s0"}) {
      %0 = oriel.exp %x : (tensor<1000xf32>) -> tensor<1000xf32>
      return %0 : tensor<1000xf32>
    }
    func.func @backward.0(%s: tensor<1000xf32> {oriel.kind = "stash", oriel.ref = "s0"})
        -> (tensor<f32> {oriel.kind = "output", oriel.ref = "y"}) {
      %0 = oriel.reduce_sum %s {dims = array<i64: 0>} : (tensor<1000xf32>) -> tensor<f32>
      %1 = oriel.constant {value = dense<1.0> : tensor<1000xf32>} : () -> tensor<1000xf32>
      %2 = oriel.exp %1 : (tensor<1000xf32>) -> tensor<1000xf32>
      %3 = oriel.reduce_sum %2 {dims = array<i64: 0>} : (tensor<1000xf32>) -> tensor<f32>
      %4 = oriel.add %0, %3 : (tensor<f32>, tensor<f32>) -> tensor<f32>
      return %4 : tensor<f32>
    }
  }
}
)mlir");
  ASSERT_TRUE(succeeded(memory));
  // The input, the constant, the stash or what comes after it; the sums.
  EXPECT_EQ(memory->peak().bytes, 3 * kValue + 2 * kArenaAlignment);
  EXPECT_EQ(memory->place().bytes, memory->peak().bytes);
}

TEST_F(ProgramMemoryTest, OpWithoutKernelIsRefused) {
  mlir::ScopedDiagnosticHandler handler(&context_, [](mlir::Diagnostic& diagnostic) {
    EXPECT_NE(diagnostic.str().find("has no kernel"), std::string::npos);
    return mlir::success();
  });
  EXPECT_TRUE(failed(of(R"mlir(
module {
  func.func @forward() {
    func.call @forward() : () -> ()
    return
  }
})mlir")));
}

}  // namespace
}  // namespace oriel
