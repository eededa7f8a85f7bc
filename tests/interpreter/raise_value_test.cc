// The raise phase by value: each function in tests/lit/passes/raise computes the same before and
// after it, on random arguments, and so do their cotangents.
//
// What a row of softmax without anything to see gives is left open: NaN before, 0 after. Float
// arguments are from -2 to 2, integers are 0 or 1. The merge of image features, which rests on a
// promise about the data, is left out, and so are factors that a file has rounded.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>
#include <ostream>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "driver/pipelines.h"
#include "ir/oriel/oriel.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "opcheck/interpreter.h"
#include "passes/train/vjp_function.h"
#include "tests/interpreter/cases.h"

namespace oriel {
namespace {

using mlir::func::FuncOp;

// Relative to max(1, |expected|): sums in another order, in f32.
constexpr double kTolerance = 1e-5;
// Gradients' sums cancel more, and are rounded otherwise on other processors.
constexpr double kGradientTolerance = 5e-5;

mlir::MLIRContext& Context() {
  static auto* context = [] {
    auto* made = new mlir::MLIRContext(mlir::MLIRContext::Threading::DISABLED);
    made->loadDialect<ir::OrielDialect, mlir::func::FuncDialect>();
    return made;
  }();
  return *context;
}

struct Case {
  std::string file, text;  // one part of a file that `// -----` splits

  friend std::ostream& operator<<(std::ostream& out, const Case& test) { return out << test.file; }
};

std::vector<Case> AllCases() {
  std::set<std::string> paths;
  for (const auto& entry :
       std::filesystem::directory_iterator(ORIEL_SOURCE_DIR "/tests/lit/passes/raise")) {
    const std::string name = entry.path().filename();
    if (entry.path().extension() != ".mlir" || name.rfind("invalid", 0) == 0) continue;
    // Those of merges mean something for masks of so many positions only, and rounded factors
    // become exact.
    const bool isKept =
        name.rfind("raise_merge", 0) != 0 && name != "raise_activation_rounded.mlir";
    if (isKept) paths.insert(entry.path());
  }
  std::vector<Case> cases;
  for (const std::string& path : paths) {
    std::ifstream file(path);
    std::string line, text;
    const std::string name = std::filesystem::path(path).filename();
    while (std::getline(file, line)) {
      if (line == "// -----") {
        cases.push_back({name, std::move(text)});
        text.clear();
      } else {
        text += line + "\n";
      }
    }
    cases.push_back({name, std::move(text)});
  }
  return cases;
}

HostTensor randomTensor(mlir::Type type, std::mt19937* random) {
  HostTensor tensor(*specOf(type));
  std::uniform_real_distribution<double> uniform(-2, 2);
  const bool is_float =
      tensor.spec().dtype == runtime::DType::kF32 || tensor.spec().dtype == runtime::DType::kF64;
  for (int64_t i = 0; i < tensor.spec().num_elements(); ++i) {
    const double x = uniform(*random);
    tensor.set(i, is_float ? x : (x < 0 ? 0 : 1));
  }
  return tensor;
}

std::vector<HostTensor> RunFunction(FuncOp function, const std::vector<HostTensor>& arguments) {
  std::vector<const HostTensor*> pointers;
  for (const HostTensor& argument : arguments) pointers.push_back(&argument);
  auto interpreter = Interpreter::create(function);
  EXPECT_TRUE(interpreter.ok()) << interpreter.status();
  if (!interpreter.ok()) return {};
  auto results = interpreter->run(pointers);
  EXPECT_TRUE(results.ok()) << results.status();
  return results.ok() ? *std::move(results) : std::vector<HostTensor>();
}

// The cotangent of an argument for random ones of the results; nothing if an op has none.
// Positions' tables and the like have none once they are operands of a raised op: no parameter
// leads there.
std::optional<HostTensor> Gradient(FuncOp function, unsigned argument,
                                   const std::vector<HostTensor>& arguments) {
  mlir::ScopedDiagnosticHandler quiet(&Context(), [](mlir::Diagnostic&) {});
  mlir::FailureOr<VjpFunction> vjp = buildVjpFunction(function, {argument});
  if (failed(vjp)) return std::nullopt;
  std::mt19937 random(11);
  std::vector<HostTensor> cotangents;
  for (mlir::Type type : function.getResultTypes()) {
    cotangents.push_back(randomTensor(type, &random));
  }
  auto inputs = vjpArguments(function, *vjp, arguments, cotangents);
  EXPECT_TRUE(inputs.ok()) << inputs.status();
  if (!inputs.ok()) return std::nullopt;
  std::vector<HostTensor> results = RunFunction(vjp->function, *inputs);
  vjp->function.erase();
  if (results.empty()) return std::nullopt;
  return std::move(results[0]);
}

// Whether the argument leads to a table of positions or a mask, which raised ops have no cotangent
// for.
bool leadsToTable(mlir::Value value) {
  return llvm::any_of(value.getUses(), [](mlir::OpOperand& use) {
    mlir::Operation* user = use.getOwner();
    if (llvm::isa<ir::RopeOp>(user) && use.getOperandNumber() > 0) return true;
    if (llvm::isa<ir::AttentionOp>(user) && use.getOperandNumber() > 2) return true;
    return llvm::any_of(user->getResults(),
                        [](mlir::Value result) { return leadsToTable(result); });
  });
}

// Of all elements together.
double Norm(const HostTensor& tensor) {
  double sum = 0;
  for (int64_t i = 0; i < tensor.spec().num_elements(); ++i) sum += tensor.get(i) * tensor.get(i);
  return std::sqrt(sum);
}

double Distance(const HostTensor& a, const HostTensor& b) {
  HostTensor difference(a.spec());
  for (int64_t i = 0; i < a.spec().num_elements(); ++i) difference.set(i, a.get(i) - b.get(i));
  return Norm(difference);
}

class RaiseValue : public ::testing::TestWithParam<Case> {};

TEST_P(RaiseValue, IsKept) {
  auto module = mlir::parseSourceString<mlir::ModuleOp>(GetParam().text, &Context());
  ASSERT_TRUE(module);
  mlir::OwningOpRef<mlir::ModuleOp> raised = module->clone();
  mlir::PassManager passes(&Context());
  for (const PipelinePhase& phase : pipelinePhases()) {
    if (phase.name == "raise") phase.addPasses(passes, PipelineOptions());
  }
  ASSERT_GT(passes.size(), 0u);
  ASSERT_TRUE(succeeded(passes.run(*raised)));
  for (FuncOp function : llvm::to_vector(module->getOps<FuncOp>())) {
    SCOPED_TRACE(function.getName().str());
    std::mt19937 random(7);
    std::vector<HostTensor> arguments;
    for (mlir::Type type : function.getArgumentTypes()) {
      arguments.push_back(randomTensor(type, &random));
    }
    const auto expected = RunFunction(function, arguments);
    auto raised_function = raised->lookupSymbol<FuncOp>(function.getName());
    const auto actual = RunFunction(raised_function, arguments);
    ASSERT_EQ(actual.size(), expected.size());
    int64_t compared = 0, all = 0;
    for (size_t k = 0; k < expected.size(); ++k) {
      ASSERT_EQ(actual[k].spec(), expected[k].spec());
      for (int64_t i = 0; i < expected[k].spec().num_elements(); ++i) {
        const double before = expected[k].get(i);
        ++all;
        if (std::isnan(before)) continue;
        ++compared;
        EXPECT_NEAR(actual[k].get(i), before, kTolerance * std::max(1.0, std::abs(before)))
            << "result " << k << ", element " << i;
      }
    }
    EXPECT_EQ(compared > 0, all > 0) << "every element is NaN";

    int64_t gradients = 0, raised_gradients = 0;
    for (unsigned argument : floatArguments(function)) {
      const auto before = Gradient(function, argument, arguments);
      if (!before) continue;
      ++gradients;
      const auto after = Gradient(raised_function, argument, arguments);
      if (!after) {
        EXPECT_TRUE(leadsToTable(raised_function.getArgument(argument)))
            << "argument " << argument << " has no cotangent any more";
        continue;
      }
      ++raised_gradients;
      const double norm = Norm(*before);
      if (std::isnan(norm)) continue;
      EXPECT_LE(Distance(*after, *before), kGradientTolerance * std::max(1.0, norm))
          << "cotangent of argument " << argument;
    }
    EXPECT_EQ(raised_gradients > 0, gradients > 0) << "no cotangent is left";
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, RaiseValue, ::testing::ValuesIn(AllCases()));

}  // namespace
}  // namespace oriel
