// Generated kernels by value: every function of chains.mlir becomes one launch of generated code,
// and gives the bits that its ops' own host kernels give, on random bits: numbers of all sizes,
// infinities and NaN (of which only that they are NaN counts). On each target that this processor
// runs, with one thread and several, and with results in the place of operands.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "ir/exec/exec.h"
#include "ir/scalar/scalar.h"
#include "kernels/common/parallel.h"
#include "kernels/kernel.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/PassManager.h"
#include "passes/generate/code.h"
#include "passes/generate/linalg_form.h"
#include "passes/generate/passes.h"
#include "runtime/base/float16.h"
#include "tests/interpreter/cases.h"

namespace oriel {
namespace {

using mlir::func::FuncOp;
using runtime::DType;
using Tensors = std::vector<HostTensor>;

// Half are numbers of a usual size, for sums of which bits are lost on both sides.
HostTensor RandomBits(mlir::Type type, std::mt19937_64* random) {
  HostTensor tensor(*SpecOf(type));
  auto* bytes = static_cast<unsigned char*>(tensor.data());
  const int64_t count = tensor.spec().num_elements();
  const int64_t size = tensor.spec().bytes() / count;
  std::uniform_real_distribution<double> usual(-4, 4);
  for (int64_t i = 0; i < count; ++i) {
    uint64_t bits = (*random)();
    const bool plain = bits % 2 == 0;
    bits = (*random)();
    const auto single = static_cast<float>(usual(*random));
    switch (tensor.spec().dtype) {
      case DType::kBool:
        bits %= 2;
        break;
      case DType::kF32:
        if (plain) std::memcpy(&bits, &single, sizeof single);
        break;
      case DType::kBF16:
        if (plain) bits = runtime::FloatToBFloat16(single);
        break;
      case DType::kF64:
        if (plain) {
          const double number = usual(*random);
          std::memcpy(&bits, &number, sizeof number);
        }
        break;
      default:
        break;
    }
    std::memcpy(bytes + i * size, &bits, size);
  }
  return tensor;
}

HostTensor CopyOf(const HostTensor& tensor) {
  HostTensor copy(tensor.spec());
  std::memcpy(copy.data(), tensor.data(), tensor.spec().bytes());
  return copy;
}

bool IsNan(const HostTensor& tensor, int64_t i) {
  switch (tensor.spec().dtype) {
    case DType::kF32:
      return std::isnan(static_cast<const float*>(tensor.data())[i]);
    case DType::kF64:
      return std::isnan(static_cast<const double*>(tensor.data())[i]);
    case DType::kBF16:
      return std::isnan(runtime::BFloat16ToFloat(static_cast<const uint16_t*>(tensor.data())[i]));
    default:
      return false;
  }
}

void ExpectSameBits(const HostTensor& actual, const HostTensor& expected, int result) {
  const int64_t count = expected.spec().num_elements();
  const int64_t size = expected.spec().bytes() / count;
  for (int64_t i = 0; i < count; ++i) {
    if (IsNan(actual, i) && IsNan(expected, i)) continue;
    uint64_t a = 0, e = 0;
    std::memcpy(&a, static_cast<const char*>(actual.data()) + i * size, size);
    std::memcpy(&e, static_cast<const char*>(expected.data()) + i * size, size);
    ASSERT_EQ(a, e) << "bits of element " << i << " of result " << result;
  }
}

class GeneratedValueTest : public ::testing::TestWithParam<FunctionCase> {};

// The launch, and how it is prepared for a target.
struct Launch {
  exec::KernelOp kernel;
  kernels::KernelSpec spec;

  kernels::KernelFn Prepare(const std::string& target, int threads) {
    mlir::FailureOr<Image> image = compileKernel(kernel, "k", target);
    EXPECT_TRUE(succeeded(image));
    if (failed(image)) return nullptr;
    kernels::KernelSpec full = spec;
    const auto loops = loopSizes(kernel);
    full.attributes["name"] = std::string("k");
    full.attributes["units"] = loops.front();
    full.attributes["unit_elements"] =
        mlir::computeProduct(llvm::ArrayRef<int64_t>(loops).drop_front());
    full.attributes["image." + target] = image->code;
    full.attributes["entry." + target] = image->entry;
    full.num_threads = threads;
    absl::StatusOr<kernels::KernelFn> made = kernels::KernelRegistry::Host().Prepare(full);
    EXPECT_TRUE(made.ok()) << made.status();
    return made.ok() ? *made : nullptr;
  }
};

// Of a function that is one exec.generated on its arguments, in their order.
std::optional<Launch> LaunchOf(FuncOp function, mlir::ModuleOp module,
                               llvm::SmallVector<unsigned>& operands) {
  auto& ops = function.getBody().front().getOperations();
  auto generated = llvm::dyn_cast<exec::GeneratedOp>(ops.front());
  if (ops.size() != 2 || !generated) return std::nullopt;
  auto builder = mlir::OpBuilder::atBlockEnd(module.getBody());
  Launch launch;
  launch.kernel = exec::KernelOp::create(builder, function.getLoc(), "k");
  mlir::IRMapping mapping;
  generated.getBody().cloneInto(&launch.kernel.getBody(), mapping);
  launch.spec.kernel = "generated";
  for (mlir::Value operand : generated.getInputs()) {
    operands.push_back(llvm::cast<mlir::BlockArgument>(operand).getArgNumber());
    launch.spec.operands.push_back(*SpecOf(operand.getType()));
  }
  for (mlir::Value result : generated.getOutputs()) {
    launch.spec.results.push_back(*SpecOf(result.getType()));
  }
  return launch;
}

TEST_P(GeneratedValueTest, GivesTheBitsOfItsOps) {
  kernels::min_parallel_work = 1;
  auto module = ParseCases(GetParam().path);
  ASSERT_TRUE(module);
  auto function = module->lookupSymbol<FuncOp>(GetParam().function);
  std::mt19937_64 random(7);
  Tensors arguments;
  for (mlir::Type type : function.getArgumentTypes()) {
    arguments.push_back(RandomBits(type, &random));
  }
  absl::StatusOr<Interpreter> reference = Interpreter::Create(function);
  ASSERT_TRUE(reference.ok()) << reference.status();
  absl::StatusOr<Tensors> expected = reference->Run(Pointers(arguments));
  ASSERT_TRUE(expected.ok()) << expected.status();

  mlir::PassManager passes(&CaseContext());
  passes.addPass(createFormGenerated());
  ASSERT_TRUE(succeeded(passes.run(*module)));
  llvm::SmallVector<unsigned> order;
  std::optional<Launch> launch = LaunchOf(function, *module, order);
  ASSERT_TRUE(launch) << "the function is no single launch";
  auto yielded = function.getBody().front().getTerminator()->getOperands();

  ASSERT_FALSE(hostTargets().empty());
  for (const std::string& target : hostTargets()) {
    if (target == "x86-64-v3" && !__builtin_cpu_supports("avx2")) continue;
    for (const int threads : {1, 3}) {
      for (const bool in_place : {false, true}) {
        SCOPED_TRACE(target + ", threads " + std::to_string(threads) +
                     (in_place ? ", in place" : ""));
        kernels::KernelFn run = launch->Prepare(target, threads);
        ASSERT_TRUE(run);
        Tensors operands, results;
        std::vector<const void*> reads;
        std::vector<void*> writes;
        for (const unsigned argument : order) operands.push_back(CopyOf(arguments[argument]));
        for (const auto& spec : launch->spec.results) results.emplace_back(spec);
        for (HostTensor& operand : operands) reads.push_back(operand.data());
        std::vector<bool> taken(operands.size());
        for (HostTensor& result : results) {
          void* place = result.data();
          for (size_t i = 0; in_place && i < operands.size(); ++i) {
            if (taken[i] || !(operands[i].spec() == result.spec())) continue;
            taken[i] = true;
            place = operands[i].data();
            break;
          }
          writes.push_back(place);
        }
        ASSERT_TRUE(run({reads.data(), writes.data()}).ok());
        for (size_t i = 0; i < results.size(); ++i) {
          if (results[i].data() == writes[i]) continue;
          std::memcpy(results[i].data(), writes[i], results[i].spec().bytes());
        }
        for (size_t i = 0; i < yielded.size(); ++i) {
          const auto number = llvm::cast<mlir::OpResult>(yielded[i]).getResultNumber();
          ExpectSameBits(results[number], (*expected)[i], static_cast<int>(i));
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

std::vector<FunctionCase> Cases() {
  mlir::DialectRegistry registry;
  registry.insert<exec::ExecDialect>();
  CaseContext().appendDialectRegistry(registry);
  CaseContext().getOrLoadDialect<exec::ExecDialect>();
  return FunctionCases("tests/generated");
}

INSTANTIATE_TEST_SUITE_P(Chains, GeneratedValueTest, ::testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name(); });

TEST(GeneratedPtxTest, RoundsEachOp) {
  auto module = ParseCases(CaseFiles("tests/generated").front());
  mlir::PassManager passes(&CaseContext());
  passes.addPass(createFormGenerated());
  ASSERT_TRUE(succeeded(passes.run(*module)));
  llvm::SmallVector<unsigned> order;
  std::optional<Launch> launch =
      LaunchOf(module->lookupSymbol<FuncOp>("product_and_sum"), *module, order);
  ASSERT_TRUE(launch);
  mlir::FailureOr<Image> image = compileKernel(launch->kernel, "k", "sm_90");
  ASSERT_TRUE(succeeded(image));
  EXPECT_NE(image->code.find(".target sm_90"), std::string::npos);
  EXPECT_NE(image->code.find(".entry k("), std::string::npos) << image->code;
  EXPECT_NE(image->code.find("mul.rn.f32"), std::string::npos) << image->code;
  EXPECT_NE(image->code.find("add.rn.f32"), std::string::npos) << image->code;
  EXPECT_EQ(image->code.find("fma"), std::string::npos) << image->code;
}

}  // namespace
}  // namespace oriel
