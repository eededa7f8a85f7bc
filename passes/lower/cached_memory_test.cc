#include "passes/lower/cached_memory.h"

#include <string>

#include "absl/strings/str_replace.h"
#include "passes/lower/program_memory_testing.h"

namespace oriel {
namespace {

// Values of 2^23 elements have segments of their own: 16 MiB each in bf16, 32 MiB in f32.
constexpr int64_t kHalf = 16 << 20, kFloat = 32 << 20;

using CachedMemoryTest = ProgramMemoryTest;

// A first stage with three microbatches in flight: HALF is the type of its parameters and of what
// is computed, GRADIENT that of what accumulates.
std::string stage(const std::string& gradient) {
  return absl::StrReplaceAll(R"mlir(
module {
  module @grid0 attributes {oriel.grid = {}, oriel.mesh = {},
      oriel.schedule = [["forward.0", 0], ["forward.0", 1], ["forward.0", 2], ["backward.0", 0],
                        ["backward.0", 1], ["backward.0", 2], ["update", 0]]} {
    func.func @forward.0(%x: HALF {oriel.kind = "input", oriel.ref = "x"})
        -> (HALF {oriel.kind = "stash", oriel.ref = "s0"}) {
      %0 = oriel.exp %x : (HALF) -> HALF
      oriel.send %0 {channel = "c", peer = "grid1"} : (HALF) -> ()
      return %0 : HALF
    }
    func.func @backward.0(%s: HALF {oriel.kind = "stash", oriel.ref = "s0"},
                          %g0: GRADIENT {oriel.kind = "gradient", oriel.ref = "p0"},
                          %g1: GRADIENT {oriel.kind = "gradient", oriel.ref = "p1"})
        -> (GRADIENT {oriel.kind = "gradient", oriel.ref = "p0"},
            GRADIENT {oriel.kind = "gradient", oriel.ref = "p1"}) {
      %0 = oriel.cast %s : (HALF) -> GRADIENT
      %1 = oriel.add %g0, %0 : (GRADIENT, GRADIENT) -> GRADIENT
      %2 = oriel.add %g1, %0 : (GRADIENT, GRADIENT) -> GRADIENT
      return %1, %2 : GRADIENT, GRADIENT
    }
    func.func @update(%p0: HALF {oriel.kind = "parameter", oriel.ref = "p0"},
                      %p1: HALF {oriel.kind = "parameter", oriel.ref = "p1"},
                      %g0: GRADIENT {oriel.kind = "gradient", oriel.ref = "p0"},
                      %g1: GRADIENT {oriel.kind = "gradient", oriel.ref = "p1"},
                      %m0: FLOAT {oriel.kind = "optimizer_state", oriel.ref = "p0", oriel.slot = "master"},
                      %m1: FLOAT {oriel.kind = "optimizer_state", oriel.ref = "p1", oriel.slot = "master"})
        -> (HALF {oriel.kind = "parameter", oriel.ref = "p0"},
            HALF {oriel.kind = "parameter", oriel.ref = "p1"},
            FLOAT {oriel.kind = "optimizer_state", oriel.ref = "p0", oriel.slot = "master"},
            FLOAT {oriel.kind = "optimizer_state", oriel.ref = "p1", oriel.slot = "master"}) {
      %0 = oriel.cast %g0 : (GRADIENT) -> FLOAT
      %1 = oriel.add %m0, %0 : (FLOAT, FLOAT) -> FLOAT
      %2 = oriel.cast %1 : (FLOAT) -> HALF
      %3 = oriel.cast %g1 : (GRADIENT) -> FLOAT
      %4 = oriel.add %m1, %3 : (FLOAT, FLOAT) -> FLOAT
      %5 = oriel.cast %4 : (FLOAT) -> HALF
      return %2, %5, %1, %4 : HALF, HALF, FLOAT, FLOAT
    }
  }
}
)mlir",
                             {{"GRADIENT", "tensor<8388608x" + gradient + ">"},
                              {"HALF", "tensor<8388608xbf16>"},
                              {"FLOAT", "tensor<8388608xf32>"}});
}

// What `software` reserves beyond an allocator that serves the program's values only.
int64_t beyond(const ProgramMemory& memory, const SoftwareMemory& software) {
  return cachedBytes(memory, software) - cachedBytes(memory);
}

// Input, parameters, gradients, masters; two copies of what is sent, three of what is stashed; a
// backward's cast, and with gradients in bf16 one of the update, which is larger.
TEST_F(CachedMemoryTest, EachValueHasASegment) {
  auto memory = of(stage("bf16"));
  ASSERT_TRUE(succeeded(memory));
  EXPECT_GE(cachedBytes(*memory), memory->peak().bytes);
  EXPECT_EQ(cachedBytes(*memory), kHalf * (1 + 2 + 2 + 2 + 3 + 1) + kFloat * (2 + 1));
  memory = of(stage("f32"));
  ASSERT_TRUE(succeeded(memory));
  EXPECT_GE(cachedBytes(*memory), memory->peak().bytes);
  EXPECT_EQ(cachedBytes(*memory), kHalf * (1 + 2 + 2 + 3) + kFloat * (2 + 2 + 1));
}

// What a microbatch stashed is given back for what the update makes.
TEST_F(CachedMemoryTest, AFullDeviceGetsBackWhatIsFree) {
  auto memory = of(stage("bf16"));
  ASSERT_TRUE(succeeded(memory));
  SoftwareMemory software;
  software.capacity = cachedBytes(*memory) - 1;
  EXPECT_LT(cachedBytes(*memory, software), cachedBytes(*memory));
}

// An update casts one gradient at a time, in memory that serves the first copy.
TEST_F(CachedMemoryTest, CopiesOfGradientsUseWhatIsFree) {
  auto memory = of(stage("bf16"));
  ASSERT_TRUE(succeeded(memory));
  SoftwareMemory software;
  software.stepGradients = StepGradients::kCopied;
  EXPECT_EQ(beyond(*memory, software), kFloat);
  software.stepGradients = StepGradients::kFlat;
  EXPECT_EQ(beyond(*memory, software), 2 * kFloat);
}

TEST_F(CachedMemoryTest, GradientsInFloatAreNotCopied) {
  auto memory = of(stage("f32"));
  ASSERT_TRUE(succeeded(memory));
  SoftwareMemory software;
  software.stepGradients = StepGradients::kFlat;
  EXPECT_EQ(beyond(*memory, software), 0);
}

TEST_F(CachedMemoryTest, GradientsAreKeptBesideFloatOnes) {
  SoftwareMemory software;
  software.keepsGradients = true;
  auto memory = of(stage("f32"));
  ASSERT_TRUE(succeeded(memory));
  EXPECT_EQ(beyond(*memory, software), 2 * kHalf);
  memory = of(stage("bf16"));
  ASSERT_TRUE(succeeded(memory));
  EXPECT_EQ(beyond(*memory, software), 0);
}

// Sent, a microbatch's output leaves while the next is made; kept, there are three.
TEST_F(CachedMemoryTest, OutputsAreKeptForEachMicrobatchInFlight) {
  auto memory = of(stage("f32"));
  ASSERT_TRUE(succeeded(memory));
  SoftwareMemory software;
  software.keepsOutputs = true;
  EXPECT_EQ(beyond(*memory, software), kHalf);
}

}  // namespace
}  // namespace oriel
