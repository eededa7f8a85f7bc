// Every op's sharding rule, by value (opcheck/sharding_rule.h), on each op of the functions in
// tests/vjp, of their derivatives, and of the functions beside this test.
#include "opcheck/sharding_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "ir/oriel/oriel.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/train/vjp_function.h"
#include "tests/interpreter/cases.h"

namespace oriel {
namespace {

using ir::ShardableOpInterface;
using mlir::func::FuncOp;
using ::testing::IsEmpty;

// That of the tests is the dialect's own: each op has a rule.
void CheckFunction(FuncOp function, const Tensors& arguments, std::mt19937* random) {
  function.walk([](mlir::Operation* op) {
    const bool is_frame = llvm::isa<FuncOp, mlir::func::ReturnOp>(op);
    EXPECT_TRUE(is_frame || llvm::isa<ShardableOpInterface>(op))
        << op->getName().getStringRef().str() << " has no sharding rule";
  });
  Failures failures;
  CutCounts cuts;
  checkRulesByValue(function, arguments, random, failures, &cuts);
  EXPECT_THAT(failures.all(), IsEmpty());
}

class ShardingRules : public ::testing::TestWithParam<FunctionCase> {};

TEST_P(ShardingRules, PiecesMakeTheWhole) {
  auto module = ParseCases(GetParam().path);
  ASSERT_TRUE(module);
  auto function = module->lookupSymbol<FuncOp>(GetParam().function);
  std::mt19937 random(static_cast<unsigned>(std::hash<std::string>()(GetParam().function)));
  const absl::StatusOr<Tensors> arguments = randomArguments(function, &random);
  ASSERT_TRUE(arguments.ok()) << arguments.status();
  CheckFunction(function, *arguments, &random);

  llvm::SmallVector<unsigned> wanted = floatArguments(function);
  if (wanted.empty() || function->hasAttr("check.forward_only")) return;
  mlir::FailureOr<VjpFunction> vjp = buildVjpFunction(function, wanted);
  ASSERT_TRUE(succeeded(vjp));
  const Tensors cotangents = randomCotangents(function, &random);
  const absl::StatusOr<Tensors> inputs = vjpArguments(function, *vjp, *arguments, cotangents);
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  CheckFunction(vjp->function, *inputs, &random);
}

std::vector<FunctionCase> AllCases() {
  std::vector<FunctionCase> cases = FunctionCases("tests/vjp");
  for (FunctionCase& test : FunctionCases("tests/sharding")) cases.push_back(std::move(test));
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Cases, ShardingRules, ::testing::ValuesIn(AllCases()),
                         [](const auto& info) { return info.param.name(); });

TEST(ShardingCases, EveryFileParses) {
  for (const std::string& path : CaseFiles("tests/sharding")) EXPECT_TRUE(ParseCases(path)) << path;
}

// A rule without a case is not there. Runs all cases by itself: CTest gives each test a process.
TEST(ShardingCases, EveryRuleIsSplitByOne) {
  std::map<std::string, bool> coverage;  // the name of an op -> whether a case splits it
  for (const FunctionCase& test : AllCases()) {
    auto module = ParseCases(test.path);
    auto function = module->lookupSymbol<FuncOp>(test.function);
    llvm::SmallVector<unsigned> wanted = floatArguments(function);
    if (!wanted.empty() && !function->hasAttr("check.forward_only")) {
      ASSERT_TRUE(succeeded(buildVjpFunction(function, wanted)));
    }
    module->walk([&](ShardableOpInterface op) {
      bool splits = llvm::any_of(op.getShardingRule().factors,
                                 [](const ir::Factor& factor) { return factor.size > 1; });
      coverage[op->getName().getStringRef().str()] |= splits;
    });
  }
  int count = 0;
  for (mlir::RegisteredOperationName op : CaseContext().getRegisteredOperations()) {
    if (!op.hasInterface<ShardableOpInterface>()) continue;
    std::string name = op.getStringRef().str();
    ++count;
    auto found = coverage.find(name);
    if (found == coverage.end()) {
      ADD_FAILURE() << name << " has no case in tests/vjp or tests/sharding";
      continue;
    }
    // What mixes all positions of its operands.
    bool whole = name == "oriel.masked_scatter" || name == "oriel.masked_scatter_grad";
    EXPECT_EQ(found->second, !whole) << name;
  }
  EXPECT_GT(count, 0);
}

}  // namespace
}  // namespace oriel
