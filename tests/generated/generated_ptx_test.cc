// The PTX of generated kernels by value: every function of the .mlir files here becomes one launch,
// whose PTX gives the bits of the host's code of the same linalg, on random bits. On the emulator,
// which takes PTX instruction by instruction (kernels/cuda/emulator/ptx.h), through the launch that
// a GPU gets: twice, with two orders of blocks and threads, the second time as a graph; beside each
// buffer lies what must not be written.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "kernels/testing.h"
#include "tests/generated/launch.h"

namespace oriel {
namespace {

using kernels::testing::Tensor;
using mlir::func::FuncOp;

class GeneratedPtxTest : public ::testing::TestWithParam<FunctionCase> {};

// What the host's code makes of the operands.
std::vector<HostTensor> HostResults(const Launch& launch, const std::vector<HostTensor>& operands) {
  std::vector<HostTensor> results;
  std::vector<const void*> reads;
  std::vector<void*> writes;
  for (const HostTensor& operand : operands) reads.push_back(operand.data());
  for (const auto& spec : launch.spec.results) results.emplace_back(spec);
  for (HostTensor& result : results) writes.push_back(result.data());
  const kernels::KernelFn run = launch.prepare(hostTargets().front(), /*threads=*/1);
  EXPECT_TRUE(run && run({reads.data(), writes.data()}).ok());
  return results;
}

// The operand in whose place the first result can lie; -1 if there is none.
int PlaceOfResult(const Launch& launch) {
  for (size_t i = 0; launch.overwrites[0] && i < launch.spec.operands.size(); ++i) {
    if (launch.spec.operands[i] == launch.spec.results[0]) return static_cast<int>(i);
  }
  return -1;
}

TEST_P(GeneratedPtxTest, GivesTheBitsOfTheHost) {
  auto module = ParseCases(GetParam().path);
  ASSERT_TRUE(module);
  std::optional<Launch> launch =
      launchOf(module->lookupSymbol<FuncOp>(GetParam().function), *module);
  ASSERT_TRUE(launch);
  std::mt19937_64 random(11);
  std::vector<HostTensor> bits;
  std::vector<Tensor> operands;
  for (mlir::Type type : launch->kernel.getBody().front().getArgumentTypes()) {
    bits.push_back(randomBits(type, &random));
    operands.emplace_back(bits.back().spec());
    std::memcpy(operands.back().data(), bits.back().data(), bits.back().spec().bytes());
  }
  const std::vector<HostTensor> expected = HostResults(*launch, bits);
  for (const std::string architecture : {"sm_80", "sm_90"}) {  // what the emulated device takes
    const std::optional<kernels::KernelSpec> spec = launch->specFor(architecture);
    ASSERT_TRUE(spec);
    for (const int in_place : {-1, PlaceOfResult(*launch)}) {
      SCOPED_TRACE(architecture + (in_place < 0 ? "" : ", in place"));
      const absl::StatusOr<std::vector<Tensor>> made = kernels::testing::TryKernel(
          "generated", operands, spec->results, spec->attributes, in_place);
      ASSERT_TRUE(made.ok()) << made.status();
      for (size_t i = 0; i < expected.size(); ++i) {
        HostTensor actual(spec->results[i]);
        std::memcpy(actual.data(), (*made)[i].data(), actual.spec().bytes());
        ASSERT_EQ(differenceInBits(actual, expected[i]), "") << "result " << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GeneratedPtxTest,
                         ::testing::ValuesIn(FunctionCases("tests/generated")),
                         [](const auto& info) { return info.param.name(); });

}  // namespace
}  // namespace oriel
