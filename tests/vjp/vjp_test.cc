// Every op's vector-Jacobian product against finite differences, in f64.
//
// The functions in the .mlir files beside this test are differentiated by the trainer's
// autodiff; forward and backward run through the reference interpreter. For random cotangents
// c, the result must be the derivative of Σ c·f(x) by every element of every float argument:
//   (8 (L(x+h) - L(x-h)) - (L(x+2h) - L(x-2h))) / 12h,
// whose error is h⁴ and rounding. Attributes of a case: `test.low`, `test.high` of an argument
// bound its random elements (default -2 and 2), `test.step` of a function is h (1e-4).
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <ostream>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "ir/oriel/oriel.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "passes/train/vjp_function.h"
#include "tests/interpreter/interpreter.h"

namespace oriel {
namespace {

using mlir::func::FuncOp;

constexpr double kTolerance = 1e-7;  // relative to max(1, |expected|)

mlir::MLIRContext& Context() {
  static auto* context = [] {
    auto* made = new mlir::MLIRContext(mlir::MLIRContext::Threading::DISABLED);
    made->loadDialect<ir::OrielDialect, mlir::func::FuncDialect>();
    made->allowUnregisteredDialects();  // test.*
    return made;
  }();
  return *context;
}

mlir::OwningOpRef<mlir::ModuleOp> ParseCases(const std::string& path) {
  return mlir::parseSourceFile<mlir::ModuleOp>(path, &Context());
}

struct Case {
  std::string path, function;

  friend std::ostream& operator<<(std::ostream& out, const Case& test) {
    return out << "@" << test.function << " of " << test.path;
  }
};

std::vector<Case> AllCases() {
  std::vector<Case> cases;
  std::set<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(ORIEL_SOURCE_DIR "/tests/vjp")) {
    if (entry.path().extension() == ".mlir") paths.insert(entry.path().string());
  }
  for (const std::string& path : paths) {
    auto module = ParseCases(path);
    if (!module) continue;  // the test EveryFileParses says so
    for (FuncOp function : module->getOps<FuncOp>())
      cases.push_back({path, function.getName().str()});
  }
  return cases;
}

double Number(mlir::Attribute attribute, double fallback) {
  auto number = llvm::dyn_cast_or_null<mlir::FloatAttr>(attribute);
  return number ? number.getValueAsDouble() : fallback;
}

HostTensor RandomTensor(mlir::Type type, double low, double high, std::mt19937* random) {
  HostTensor tensor(*SpecOf(type));
  std::uniform_real_distribution<double> uniform(0, 1);
  for (int64_t i = 0; i < tensor.spec().num_elements(); ++i) {
    tensor.set(i, low + (high - low) * uniform(*random));
  }
  return tensor;
}

std::vector<const HostTensor*> Pointers(const std::vector<HostTensor>& tensors) {
  std::vector<const HostTensor*> pointers;
  for (const HostTensor& tensor : tensors) pointers.push_back(&tensor);
  return pointers;
}

class Vjp : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    module_ = ParseCases(GetParam().path);
    ASSERT_TRUE(module_);
    function_ = module_->lookupSymbol<FuncOp>(GetParam().function);
    std::mt19937 random(static_cast<unsigned>(std::hash<std::string>()(GetParam().function)));
    for (unsigned i = 0; i < function_.getNumArguments(); ++i) {
      double low = Number(function_.getArgAttr(i, "test.low"), -2);
      double high = Number(function_.getArgAttr(i, "test.high"), 2);
      arguments_.push_back(RandomTensor(function_.getArgumentTypes()[i], low, high, &random));
    }
    for (mlir::Type type : function_.getResultTypes()) {
      cotangents_.push_back(RandomTensor(type, -1, 1, &random));
    }
    auto forward = Interpreter::Create(function_);
    ASSERT_TRUE(forward.ok()) << forward.status();
    forward_.emplace(*std::move(forward));
  }

  // Σ cotangent · f(arguments)
  double Objective() {
    auto results = forward_->Run(Pointers(arguments_));
    EXPECT_TRUE(results.ok()) << results.status();
    if (!results.ok()) return NAN;
    double sum = 0;
    for (size_t k = 0; k < results->size(); ++k) {
      for (int64_t i = 0; i < cotangents_[k].spec().num_elements(); ++i) {
        sum += cotangents_[k].get(i) * (*results)[k].get(i);
      }
    }
    return sum;
  }

  double FiniteDifference(HostTensor& argument, int64_t element, double step) {
    double x = argument.get(element);
    auto at = [&](double offset) {
      argument.set(element, x + offset);
      return Objective();
    };
    double near = at(step) - at(-step), far = at(2 * step) - at(-2 * step);
    argument.set(element, x);
    return (8 * near - far) / (12 * step);
  }

  // The values of the forward that the backward takes.
  std::vector<HostTensor> Captured(const VjpFunction& vjp) {
    mlir::OpBuilder builder(function_);
    mlir::IRMapping mapping;
    auto stash = llvm::cast<FuncOp>(builder.clone(*function_, mapping));
    stash.setName("stash");
    llvm::SmallVector<mlir::Value> values;
    for (mlir::Value value : vjp.captured) values.push_back(mapping.lookup(value));
    mlir::Operation* terminator = stash.getBody().front().getTerminator();
    terminator->setOperands(values);
    auto interpreter = Interpreter::Create(stash);
    stash.erase();
    EXPECT_TRUE(interpreter.ok()) << interpreter.status();
    if (!interpreter.ok()) return {};
    auto results = interpreter->Run(Pointers(arguments_));
    EXPECT_TRUE(results.ok()) << results.status();
    return results.ok() ? *std::move(results) : std::vector<HostTensor>();
  }

  // The cotangents of these arguments, by the differentiated function.
  std::vector<HostTensor> Differentiate(llvm::ArrayRef<unsigned> wanted) {
    mlir::FailureOr<VjpFunction> vjp = buildVjpFunction(function_, wanted);
    EXPECT_TRUE(succeeded(vjp));
    if (failed(vjp)) return {};
    EXPECT_TRUE(succeeded(mlir::verify(vjp->function)));
    std::vector<HostTensor> inputs = Captured(*vjp);
    for (const HostTensor& cotangent : cotangents_) {
      inputs.emplace_back(cotangent.spec());
      for (int64_t i = 0; i < cotangent.spec().num_elements(); ++i) {
        inputs.back().set(i, cotangent.get(i));
      }
    }
    auto backward = Interpreter::Create(vjp->function);
    EXPECT_TRUE(backward.ok()) << backward.status();
    if (!backward.ok()) return {};
    auto results = backward->Run(Pointers(inputs));
    EXPECT_TRUE(results.ok()) << results.status();
    vjp->function.erase();
    return results.ok() ? *std::move(results) : std::vector<HostTensor>();
  }

  mlir::OwningOpRef<mlir::ModuleOp> module_;
  FuncOp function_;
  std::vector<HostTensor> arguments_, cotangents_;
  std::optional<Interpreter> forward_;
};

TEST_P(Vjp, AgreesWithFiniteDifferences) {
  llvm::SmallVector<unsigned> wanted = floatArguments(function_);
  ASSERT_FALSE(wanted.empty());
  std::vector<HostTensor> gradients = Differentiate(wanted);
  ASSERT_EQ(gradients.size(), wanted.size());
  double step = Number(function_->getAttr("test.step"), 1e-4);
  for (size_t j = 0; j < wanted.size(); ++j) {
    HostTensor& argument = arguments_[wanted[j]];
    ASSERT_EQ(gradients[j].spec(), argument.spec());
    for (int64_t i = 0; i < argument.spec().num_elements(); ++i) {
      double expected = FiniteDifference(argument, i, step);
      EXPECT_NEAR(gradients[j].get(i), expected, kTolerance * std::max(1.0, std::abs(expected)))
          << "argument " << wanted[j] << ", element " << i;
    }
    // What an op builds for one operand does not depend on which others are asked for.
    std::vector<HostTensor> alone = Differentiate({wanted[j]});
    ASSERT_EQ(alone.size(), 1u);
    for (int64_t i = 0; i < argument.spec().num_elements(); ++i) {
      EXPECT_EQ(alone[0].get(i), gradients[j].get(i)) << "argument " << wanted[j] << " alone";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, Vjp, ::testing::ValuesIn(AllCases()), [](const auto& info) {
  return std::filesystem::path(info.param.path).stem().string() + "_" + info.param.function;
});

TEST(VjpCases, EveryFileParses) {
  for (const auto& entry : std::filesystem::directory_iterator(ORIEL_SOURCE_DIR "/tests/vjp")) {
    if (entry.path().extension() != ".mlir") continue;
    EXPECT_TRUE(ParseCases(entry.path().string())) << entry.path();
  }
}

// A new differentiable op needs a case.
TEST(VjpCases, EveryDifferentiableOpHasOne) {
  std::set<std::string> covered;
  for (const Case& test : AllCases()) {
    ParseCases(test.path)->lookupSymbol(test.function)->walk([&](mlir::Operation* op) {
      covered.insert(op->getName().getStringRef().str());
    });
  }
  int count = 0;
  for (mlir::RegisteredOperationName op : Context().getRegisteredOperations()) {
    if (op.getDialectNamespace() != "oriel" || !op.hasInterface<ir::DifferentiableOpInterface>()) {
      continue;
    }
    ++count;
    EXPECT_TRUE(covered.count(op.getStringRef().str()))
        << op.getStringRef().str() << " has no case in tests/vjp/*.mlir";
  }
  EXPECT_GT(count, 0);
}

}  // namespace
}  // namespace oriel
