// Every op's vector-Jacobian product against finite differences, in f64.
//
// The functions in the .mlir files beside this test are differentiated by the trainer's
// autodiff; forward and backward run through the reference interpreter. For random cotangents
// c, the result must be the derivative of Σ c·f(x) by every element of every float argument:
//   (8 (L(x+h) - L(x-h)) - (L(x+2h) - L(x-2h))) / 12h,
// whose error is h⁴ and rounding. The attribute `test.step` of a
// case is h (1e-4).
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "ir/oriel/oriel.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "passes/train/vjp_function.h"
#include "tests/interpreter/cases.h"

namespace oriel {
namespace {

using mlir::func::FuncOp;

constexpr double kTolerance = 1e-7;  // relative to max(1, |expected|)

class Vjp : public ::testing::TestWithParam<FunctionCase> {
 protected:
  void SetUp() override {
    module_ = ParseCases(GetParam().path);
    ASSERT_TRUE(module_);
    function_ = module_->lookupSymbol<FuncOp>(GetParam().function);
    std::mt19937 random(static_cast<unsigned>(std::hash<std::string>()(GetParam().function)));
    arguments_ = RandomArguments(function_, &random);
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

  // The cotangents of these arguments, by the differentiated function.
  std::vector<HostTensor> Differentiate(llvm::ArrayRef<unsigned> wanted) {
    mlir::FailureOr<VjpFunction> vjp = buildVjpFunction(function_, wanted);
    EXPECT_TRUE(succeeded(vjp));
    if (failed(vjp)) return {};
    EXPECT_TRUE(succeeded(mlir::verify(vjp->function)));
    auto inputs = VjpArguments(function_, *vjp, arguments_, cotangents_);
    EXPECT_TRUE(inputs.ok()) << inputs.status();
    if (!inputs.ok()) return {};
    auto backward = Interpreter::Create(vjp->function);
    EXPECT_TRUE(backward.ok()) << backward.status();
    if (!backward.ok()) return {};
    auto results = backward->Run(Pointers(*inputs));
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
  double step = NumberOr(function_->getAttr("test.step"), 1e-4);
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

INSTANTIATE_TEST_SUITE_P(Cases, Vjp, ::testing::ValuesIn(FunctionCases("tests/vjp")),
                         [](const auto& info) { return info.param.name(); });

TEST(VjpCases, EveryFileParses) {
  for (const std::string& path : CaseFiles("tests/vjp")) EXPECT_TRUE(ParseCases(path)) << path;
}

// A new differentiable op needs a case.
TEST(VjpCases, EveryDifferentiableOpHasOne) {
  std::set<std::string> covered;
  for (const FunctionCase& test : FunctionCases("tests/vjp")) {
    ParseCases(test.path)->lookupSymbol(test.function)->walk([&](mlir::Operation* op) {
      covered.insert(op->getName().getStringRef().str());
    });
  }
  int count = 0;
  for (mlir::RegisteredOperationName op : CaseContext().getRegisteredOperations()) {
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
