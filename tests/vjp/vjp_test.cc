// Every op's vector-Jacobian product against finite differences (opcheck/derivative.h), on the
// functions in the .mlir files beside this test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <vector>

#include "ir/oriel/oriel.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "opcheck/derivative.h"
#include "tests/interpreter/cases.h"

namespace oriel {
namespace {

using mlir::func::FuncOp;
using ::testing::IsEmpty;

class Vjp : public ::testing::TestWithParam<FunctionCase> {};

TEST_P(Vjp, AgreesWithFiniteDifferences) {
  auto module = ParseCases(GetParam().path);
  ASSERT_TRUE(module);
  auto function = module->lookupSymbol<FuncOp>(GetParam().function);
  std::mt19937 random(static_cast<unsigned>(std::hash<std::string>()(GetParam().function)));
  const absl::StatusOr<Tensors> arguments = randomArguments(function, &random);
  ASSERT_TRUE(arguments.ok()) << arguments.status();
  Failures failures;
  checkDerivative(function, *arguments, &random, failures);
  EXPECT_THAT(failures.all(), IsEmpty());
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
