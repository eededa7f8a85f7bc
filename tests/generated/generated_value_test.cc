// Generated kernels by value: every function of the .mlir files here becomes one launch of
// generated code. It gives the bits that its ops' own host kernels give, on random bits; where one
// of them is approximated or reduces, what they give to about its last bit. On each target that
// this processor runs, with one thread and several, and with results in the place of operands, bits
// are the same.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "ir/scalar/scalar.h"
#include "kernels/common/parallel.h"
#include "tests/generated/launch.h"

namespace oriel {
namespace {

using mlir::func::FuncOp;
using runtime::DType;
using Tensors = std::vector<HostTensor>;

HostTensor CopyOf(const HostTensor& tensor) {
  HostTensor copy(tensor.spec());
  std::memcpy(copy.data(), tensor.data(), tensor.spec().bytes());
  return copy;
}

// The function's results. In place: each result that can lies where an operand was.
Tensors ResultsOf(const Launch& launch, const kernels::KernelFn& run, const Tensors& arguments,
                  bool in_place) {
  Tensors operands, results;
  std::vector<const void*> reads;
  std::vector<void*> writes;
  for (const unsigned argument : launch.arguments) operands.push_back(CopyOf(arguments[argument]));
  for (const auto& spec : launch.spec.results) results.emplace_back(spec);
  for (HostTensor& operand : operands) reads.push_back(operand.data());
  std::vector<bool> taken(operands.size());
  for (size_t number = 0; number < results.size(); ++number) {
    HostTensor& result = results[number];
    void* place = result.data();
    for (size_t i = 0; in_place && launch.overwrites[number] && i < operands.size(); ++i) {
      if (taken[i] || !(operands[i].spec() == result.spec())) continue;
      taken[i] = true;
      place = operands[i].data();
      break;
    }
    writes.push_back(place);
  }
  EXPECT_TRUE(run({reads.data(), writes.data()}).ok());
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].data() == writes[i]) continue;
    std::memcpy(results[i].data(), writes[i], results[i].spec().bytes());
  }
  Tensors ordered;
  for (const unsigned result : launch.results) ordered.push_back(CopyOf(results[result]));
  return ordered;
}

absl::StatusOr<Tensors> Reference(FuncOp function, const Tensors& arguments) {
  absl::StatusOr<Interpreter> reference = Interpreter::create(function);
  if (!reference.ok()) return reference.status();
  return reference->run(pointersTo(arguments));
}

// Of a value in a chain that has been rounded a few times; 1 for what is below it.
double Tolerance(DType dtype) { return dtype == DType::kBF16 ? 0x1p-6 : 2e-6; }

class GeneratedValueTest : public ::testing::TestWithParam<FunctionCase> {};

TEST_P(GeneratedValueTest, GivesWhatItsOpsGive) {
  kernels::min_parallel_work = 1;
  auto module = ParseCases(GetParam().path);
  ASSERT_TRUE(module);
  auto function = module->lookupSymbol<FuncOp>(GetParam().function);
  std::mt19937_64 random(7);
  std::mt19937 few(7);
  Tensors bits;
  const Tensors usual = *randomArguments(function, &few);
  for (mlir::Type type : function.getArgumentTypes()) bits.push_back(randomBits(type, &random));
  absl::StatusOr<Tensors> of_bits = Reference(function, bits);
  ASSERT_TRUE(of_bits.ok()) << of_bits.status();
  absl::StatusOr<Tensors> of_usual = Reference(function, usual);
  ASSERT_TRUE(of_usual.ok()) << of_usual.status();

  std::optional<Launch> launch = launchOf(function, *module);
  ASSERT_TRUE(launch);
  bool exact = true;
  for (mlir::Operation& op : launch->kernel.getBody().front()) {
    auto scalar = llvm::dyn_cast<ir::ScalarOpInterface>(op);
    if (scalar && scalar.isApproximated()) exact = false;
    if (llvm::isa<ir::RowReductionOpInterface>(op)) exact = false;
  }
  Tensors first;
  ASSERT_FALSE(targetsOfThisProcessor().empty());
  for (const std::string& target : targetsOfThisProcessor()) {
    for (const int threads : {1, 3}) {
      const kernels::KernelFn run = launch->prepare(target, threads);
      ASSERT_TRUE(run);
      for (const bool in_place : {false, true}) {
        SCOPED_TRACE(target + ", threads " + std::to_string(threads) +
                     (in_place ? ", in place" : ""));
        Tensors made = ResultsOf(*launch, run, bits, in_place);
        if (first.empty())
          first = exact ? *std::move(of_bits) : ResultsOf(*launch, run, bits, in_place);
        for (size_t i = 0; i < made.size(); ++i) {
          ASSERT_EQ(differenceInBits(made[i], first[i]), "") << "result " << i;
        }
        made = ResultsOf(*launch, run, usual, in_place);
        for (size_t i = 0; i < made.size(); ++i) {
          for (int64_t j = 0; j < made[i].spec().num_elements(); ++j) {
            const double expected = (*of_usual)[i].get(j), actual = made[i].get(j);
            if (std::isnan(actual) && std::isnan(expected)) continue;
            ASSERT_NEAR(actual, expected,
                        Tolerance(made[i].spec().dtype) * std::max(1.0, std::fabs(expected)))
                << "element " << j << " of result " << i;
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GeneratedValueTest,
                         ::testing::ValuesIn(FunctionCases("tests/generated")),
                         [](const auto& info) { return info.param.name(); });

// PTX has all that IEEE 754 leaves no choice in: nothing contracted, approximated or flushed to
// zero. Where there is ptxas, it assembles it without spills.
TEST_P(GeneratedValueTest, HasPtxThatRoundsEachOp) {
  auto module = ParseCases(GetParam().path);
  std::optional<Launch> launch =
      launchOf(module->lookupSymbol<FuncOp>(GetParam().function), *module);
  ASSERT_TRUE(launch);
  const std::string ptxas = "PATH=$PATH:/usr/local/cuda/bin ptxas ";
  const bool assembles = std::system((ptxas + "--version > /dev/null 2>&1").c_str()) == 0;
  for (const std::string architecture : {"sm_80", "sm_90", "sm_100"}) {
    mlir::FailureOr<Image> image = compileKernel(launch->kernel, "k", architecture);
    ASSERT_TRUE(succeeded(image));
    EXPECT_NE(image->code.find(".target " + architecture), std::string::npos);
    EXPECT_NE(image->code.find(".entry k("), std::string::npos);
    for (const char* other : {"fma.", "mad.rn", ".approx", ".full", ".ftz", "call"}) {
      EXPECT_EQ(image->code.find(other), std::string::npos) << other << "\n" << image->code;
    }
    if (!assembles) continue;
    const std::string base = ::testing::TempDir() + "/" + GetParam().name() + architecture;
    std::ofstream(base + ".ptx") << image->code;
    const std::string command = ptxas + "-v -arch " + architecture + " " + base +
                                ".ptx -o /dev/null > " + base + ".log 2>&1";
    EXPECT_EQ(std::system(command.c_str()), 0);
    std::stringstream log;
    log << std::ifstream(base + ".log").rdbuf();
    EXPECT_NE(log.str().find("0 bytes spill stores, 0 bytes spill loads"), std::string::npos)
        << log.str();
    std::remove((base + ".ptx").c_str());
    std::remove((base + ".log").c_str());
  }
}

}  // namespace
}  // namespace oriel
