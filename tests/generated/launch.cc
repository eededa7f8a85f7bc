#include "tests/generated/launch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "ir/scalar/scalar.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/PassManager.h"
#include "passes/generate/linalg_form.h"
#include "passes/generate/passes.h"
#include "runtime/base/float16.h"

namespace oriel {

using runtime::DType;

std::optional<kernels::KernelSpec> Launch::specFor(const std::string& target) const {
  mlir::FailureOr<Image> image = compileKernel(kernel, "k", target);
  EXPECT_TRUE(succeeded(image));
  if (failed(image)) return std::nullopt;
  kernels::KernelSpec full = spec;
  const LaunchUnits units = unitsOf(kernel);
  full.attributes["name"] = std::string("k");
  full.attributes["units"] = units.units;
  full.attributes["unit_elements"] = units.elements;
  full.attributes["block_units"] = units.blockUnits;
  full.attributes["thread_elements"] = units.threadElements;
  full.attributes["image." + target] = image->code;
  full.attributes["entry." + target] = image->entry;
  return full;
}

kernels::KernelFn Launch::prepare(const std::string& target, int threads) const {
  std::optional<kernels::KernelSpec> full = specFor(target);
  if (!full) return nullptr;
  full->num_threads = threads;
  absl::StatusOr<kernels::KernelFn> made = kernels::KernelRegistry::Host().Prepare(*full);
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? *made : nullptr;
}

std::optional<Launch> launchOf(mlir::func::FuncOp function, mlir::ModuleOp module) {
  CaseContext().getOrLoadDialect<exec::ExecDialect>();
  mlir::PassManager passes(&CaseContext());
  passes.addPass(createFormGenerated());
  EXPECT_TRUE(succeeded(passes.run(module)));
  auto& ops = function.getBody().front().getOperations();
  auto generated = llvm::dyn_cast<exec::GeneratedOp>(ops.front());
  EXPECT_TRUE(ops.size() == 2 && generated)
      << "@" << function.getName().str() << " is no single launch";
  if (ops.size() != 2 || !generated) return std::nullopt;
  auto builder = mlir::OpBuilder::atBlockEnd(module.getBody());
  Launch launch;
  launch.kernel = exec::KernelOp::create(builder, function.getLoc(), "k");
  mlir::IRMapping mapping;
  generated.getBody().cloneInto(&launch.kernel.getBody(), mapping);
  launch.spec.kernel = "generated";
  for (mlir::Value operand : generated.getInputs()) {
    launch.arguments.push_back(llvm::cast<mlir::BlockArgument>(operand).getArgNumber());
    launch.spec.operands.push_back(*specOf(operand.getType()));
  }
  for (mlir::OpResult result : generated->getResults()) {
    launch.spec.results.push_back(*specOf(result.getType()));
    launch.overwrites.push_back(generated.mayOverwrite(result.getResultNumber(), 0));
  }
  for (mlir::Value result : ops.back().getOperands()) {
    launch.results.push_back(llvm::cast<mlir::OpResult>(result).getResultNumber());
  }
  return launch;
}

std::vector<std::string> targetsOfThisProcessor() {
  std::vector<std::string> targets;
  for (const std::string& target : hostTargets()) {
    if (target != "x86-64-v3" || __builtin_cpu_supports("avx2")) targets.push_back(target);
  }
  return targets;
}

HostTensor randomBits(mlir::Type type, std::mt19937_64* random) {
  HostTensor tensor(*specOf(type));
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

namespace {

bool isNan(const HostTensor& tensor, int64_t i) {
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

}  // namespace

std::string differenceInBits(const HostTensor& actual, const HostTensor& expected) {
  const int64_t count = expected.spec().num_elements();
  const int64_t size = expected.spec().bytes() / count;
  for (int64_t i = 0; i < count; ++i) {
    if (isNan(actual, i) && isNan(expected, i)) continue;
    uint64_t a = 0, e = 0;
    std::memcpy(&a, static_cast<const char*>(actual.data()) + i * size, size);
    std::memcpy(&e, static_cast<const char*>(expected.data()) + i * size, size);
    if (a == e) continue;
    return "element " + std::to_string(i) + " has the bits " + std::to_string(a) + " (" +
           std::to_string(actual.get(i)) + "), not " + std::to_string(e) + " (" +
           std::to_string(expected.get(i)) + ")";
  }
  return "";
}

}  // namespace oriel
