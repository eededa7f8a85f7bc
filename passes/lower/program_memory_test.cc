#include "passes/lower/program_memory.h"

#include <algorithm>
#include <map>
#include <string>

#include "passes/lower/program_memory_testing.h"

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
  const MemoryLayout arena = memory->place();
  EXPECT_EQ(arena.lowerBound, memory->peak().bytes);
  EXPECT_EQ(arena.bytes, arena.lowerBound);
  EXPECT_EQ(arena.offsets.size(), memory->assignment().storages().size());
}

TEST_F(ProgramMemoryTest, ValuesLieAtMultiplesOfTheAlignment) {
  ASSERT_TRUE(succeeded(of(kProgram)));
  auto memory = ProgramMemory::of(ir::programsOf(*module_).front(), 4096);
  ASSERT_TRUE(succeeded(memory));
  EXPECT_EQ(memory->peak().bytes % 4096, 0);
  const auto arena = memory->place();
  EXPECT_EQ(arena.bytes, memory->peak().bytes);
  for (StorageId id = 0; id < static_cast<StorageId>(memory->assignment().storages().size());
       ++id) {
    EXPECT_EQ(memory->bytesOf(id) % 4096, 0) << id;
  }
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

// Forward keeps two values, of which backward reads one before it makes temporaries.
std::string pipeline(const std::string& schedule) {
  return R"mlir(
module {
  module @grid0 attributes {oriel.grid = {}, oriel.mesh = {}, oriel.schedule = [)mlir" +
         schedule + R"mlir(]} {
    func.func @forward.0(%x: tensor<1000xf32> {oriel.kind = "input", oriel.ref = "x"})
        -> (tensor<1000xf32> {oriel.kind = "stash", oriel.ref = "s0"},
            tensor<1000xf32> {oriel.kind = "stash", oriel.ref = "s1"}) {
      %0 = oriel.exp %x : (tensor<1000xf32>) -> tensor<1000xf32>
      %1 = oriel.mul %0, %x : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
      return %0, %1 : tensor<1000xf32>, tensor<1000xf32>
    }
    func.func @backward.0(%s0: tensor<1000xf32> {oriel.kind = "stash", oriel.ref = "s0"},
                          %s1: tensor<1000xf32> {oriel.kind = "stash", oriel.ref = "s1"},
                          %g: tensor<f32> {oriel.kind = "gradient", oriel.ref = "p0"})
        -> (tensor<f32> {oriel.kind = "gradient", oriel.ref = "p0"}) {
      %0 = oriel.reduce_sum %s1 {dims = array<i64: 0>} : (tensor<1000xf32>) -> tensor<f32>
      %1 = oriel.exp %s0 : (tensor<1000xf32>) -> tensor<1000xf32>
      %2 = oriel.mul %s0, %1 : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
      %3 = oriel.reduce_sum %2 {dims = array<i64: 0>} : (tensor<1000xf32>) -> tensor<f32>
      %4 = oriel.add %0, %3 : (tensor<f32>, tensor<f32>) -> tensor<f32>
      %5 = oriel.add %g, %4 : (tensor<f32>, tensor<f32>) -> tensor<f32>
      return %5 : tensor<f32>
    }
  }
}
)mlir";
}

std::string run(const char* segment, int64_t microbatch) {
  return std::string("[\"") + segment + ".0\", " + std::to_string(microbatch) + "]";
}

// What backward makes lies where it has read what its microbatch has kept: elsewhere for each
// microbatch in flight.
TEST_F(ProgramMemoryTest, TemporariesHaveCopies) {
  std::string schedule = run("forward", 0);
  for (int64_t microbatch = 1; microbatch < 8; ++microbatch) {
    schedule += ", " + run("forward", microbatch) + ", " + run("backward", microbatch - 1);
  }
  auto memory = of(pipeline(schedule));
  ASSERT_TRUE(succeeded(memory));
  const MemoryLayout arena = memory->place();
  EXPECT_EQ(arena.lowerBound, memory->peak().bytes);
  EXPECT_LE(arena.bytes, arena.lowerBound + arena.lowerBound / 20);
  bool temporary = false;
  for (auto [id, storage] : llvm::enumerate(memory->assignment().storages())) {
    EXPECT_EQ(arena.offsets[id].size(), static_cast<size_t>(storage.slots));
    temporary = temporary || (!storage.role && storage.slots > 1);
  }
  EXPECT_TRUE(temporary);
}

// 16000 copies of two values, which are not placed one by one.
TEST_F(ProgramMemoryTest, VeryManyCopiesAreInTheirPlaces) {
  constexpr int64_t kMicrobatches = 16'000;
  std::string schedule;
  for (const char* segment : {"forward", "backward"}) {
    for (int64_t microbatch = 0; microbatch < kMicrobatches; ++microbatch) {
      schedule += (schedule.empty() ? "" : ", ") + run(segment, microbatch);
    }
  }
  auto memory = of(pipeline(schedule));
  ASSERT_TRUE(succeeded(memory));
  const MemoryLayout arena = memory->place(memory->peak().bytes + 4 * kValue);
  EXPECT_GE(arena.lowerBound, 2 * kMicrobatches * kValue);
  EXPECT_LE(arena.bytes, arena.lowerBound + 4 * kValue);
}

// The most that is in use at a time: of what persists, and by stays.
int64_t peakOfStays(const ProgramMemory& memory) {
  std::map<int64_t, int64_t> changes;
  int64_t now = 0, most = 0;
  for (StorageId id = 0; id < static_cast<StorageId>(memory.assignment().storages().size()); ++id) {
    const Storage& storage = memory.assignment().storages()[id];
    if (storage.persistent && !storage.isStash()) now += memory.bytesOf(id);
  }
  for (const MemoryStay& stay : memory.stays()) {
    changes[stay.span.begin] += stay.bytes;
    changes[stay.span.end + 1] -= stay.bytes;
  }
  for (const auto& [tick, change] : changes) most = std::max(most, now += change);
  return most;
}

// The one backward of a step sets a gradient, which update reads: where the stash was before, and
// where update has its temporaries behind.
constexpr char kStepGradient[] = R"mlir(
module attributes {oriel.grid = {}, oriel.mesh = {},
    oriel.schedule = [["forward", 0], ["backward", 0], ["update", 0]]} {
  func.func @forward(%x: tensor<1000xf32> {oriel.kind = "input", oriel.ref = "x"})
      -> (tensor<1000xf32> {oriel.kind = "stash", oriel.ref = "s0"}) {
    %0 = oriel.exp %x : (tensor<1000xf32>) -> tensor<1000xf32>
    return %0 : tensor<1000xf32>
  }
  func.func @backward(%s: tensor<1000xf32> {oriel.kind = "stash", oriel.ref = "s0"})
      -> (tensor<1000xf32> {oriel.kind = "gradient", oriel.ref = "p0"}) {
    %0 = oriel.exp %s : (tensor<1000xf32>) -> tensor<1000xf32>
    %1 = oriel.reduce_sum %0 {dims = array<i64: 0>} : (tensor<1000xf32>) -> tensor<f32>
    %2 = oriel.broadcast %1 : (tensor<f32>) -> tensor<1000xf32>
    return %2 : tensor<1000xf32>
  }
  func.func @update(%p: tensor<1000xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
                    %g: tensor<1000xf32> {oriel.kind = "gradient", oriel.ref = "p0"})
      -> (tensor<1000xf32> {oriel.kind = "parameter", oriel.ref = "p0"}) {
    %0 = oriel.exp %g : (tensor<1000xf32>) -> tensor<1000xf32>
    %1 = oriel.sub %p, %0 : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
    return %1 : tensor<1000xf32>
  }
}
)mlir";

TEST_F(ProgramMemoryTest, AGradientOfOneBackwardLiesWhereTheStashWas) {
  auto memory = of(kStepGradient);
  ASSERT_TRUE(succeeded(memory));
  // Parameter and input; the stash, what is computed over it and its sum, then the gradient.
  EXPECT_EQ(memory->peak().bytes, 3 * kValue + 64);
  EXPECT_LE(memory->place().bytes, memory->peak().bytes + 64);  // the number may lie between
  // Another backward adds to it.
  std::string two = kStepGradient;
  const std::string entry = R"(["backward", 0], )";
  two.insert(two.find(entry), entry);
  memory = of(two);
  ASSERT_TRUE(succeeded(memory));
  EXPECT_EQ(memory->peak().bytes, 4 * kValue + 64);
}

TEST_F(ProgramMemoryTest, StaysAddUpToThePeak) {
  for (const std::string& text :
       {std::string(kProgram), std::string(kPipeline), std::string(kStepGradient)}) {
    auto memory = of(text);
    ASSERT_TRUE(succeeded(memory));
    EXPECT_EQ(peakOfStays(*memory), memory->peak().bytes) << text;
  }
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
