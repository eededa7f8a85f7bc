// Every op's sharding rule, by value.
//
// Each op of the functions in tests/vjp, of their derivatives, and of the functions beside this
// test is run whole through the reference interpreter. Then, for each factor of its rule and each
// pair of factors, its operands are cut into pieces, the op that `buildLocal` makes runs on each
// combination of pieces, and the results are put together as the rule says: they must be the
// whole op's. Linear groups are checked by op(x + y) = op(x) + op(y). Where a factor needs several
// steps, the ops that `decompose` makes must compute the same, split by the factor, and are checked
// like any.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "ir/oriel/oriel.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Verifier.h"
#include "tests/interpreter/cases.h"

namespace oriel {
namespace {

using ir::FactorKind;
using ir::localShape;
using ir::ShardableOpInterface;
using ir::ShardingRule;
using ir::TensorFactors;
using mlir::func::FuncOp;
using Tensors = std::vector<HostTensor>;
using Index = std::vector<int64_t>;  // by factor, or by dimension

// Whether two values are the same but for rounding; `f32`: of an op that has such values.
bool Agree(double actual, double expected, bool f32) {
  if (actual == expected || (std::isnan(actual) && std::isnan(expected))) return true;
  return std::abs(actual - expected) <= (f32 ? 1e-5 : 1e-9) * std::max(1.0, std::abs(expected));
}

HostTensor Copy(const HostTensor& tensor) {
  HostTensor copy(tensor.spec());
  for (int64_t i = 0; i < tensor.spec().num_elements(); ++i) copy.set(i, tensor.get(i));
  return copy;
}

// Calls f(index) for each index below `shape` in row-major order.
template <typename F>
void ForEachIndex(const Index& shape, F f) {
  int64_t count = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  Index index(shape.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    f(index);
    for (int dim = static_cast<int>(shape.size()) - 1; dim >= 0; --dim) {
      if (++index[dim] < shape[dim]) break;
      index[dim] = 0;
    }
  }
}

int64_t Linear(const Index& index, const Index& shape) {
  int64_t linear = 0;
  for (size_t i = 0; i < shape.size(); ++i) linear = linear * shape[i] + index[i];
  return linear;
}

// How a tensor of `shape`, made of factors, is cut.
class Cutting {
 public:
  Cutting(const ShardingRule& rule, const TensorFactors& dims, const Index& shape,
          const Index& pieces)
      : rule_(rule), dims_(dims), shape_(shape), pieces_(pieces) {
    llvm::SmallVector<int64_t> local = localShape(shape, dims, pieces);
    local_.assign(local.begin(), local.end());
  }

  const Index& local_shape() const { return local_; }

  // Where an element of a piece lies in the whole. The factors of a dimension are digits of its
  // index, outermost first; below them lies what the rule does not split.
  int64_t Global(const Index& piece, const Index& local_index) const {
    Index global(shape_.size());
    for (size_t dim = 0; dim < shape_.size(); ++dim) {
      int64_t rest = local_[dim], digits = local_index[dim], index = 0;
      for (int f : dims_[dim]) {
        int64_t size = rule_.factors[f].size / pieces_[f];
        rest /= size;
        index = index * rule_.factors[f].size + piece[f] * size + digits / rest;
        digits %= rest;
      }
      global[dim] = index * rest + digits;
    }
    return Linear(global, shape_);
  }

 private:
  const ShardingRule& rule_;
  const TensorFactors& dims_;
  Index shape_, pieces_, local_;
};

void CheckFunction(FuncOp function, const Tensors& arguments, std::mt19937* random);

bool NeedsSteps(const ShardingRule& rule) {
  return llvm::any_of(rule.factors,
                      [](const ir::Factor& factor) { return factor.kind == FactorKind::kSteps; });
}

// One op, alone in a function, and values of its operands.
class OpCase {
 public:
  OpCase(ShardableOpInterface op, Tensors operands)
      : op_(op), rule_(op.getShardingRule()), operands_(std::move(operands)) {
    auto isF32 = [](mlir::Type type) { return mlir::getElementTypeOrSelf(type).isF32(); };
    f32_ = llvm::any_of(op->getOperandTypes(), isF32) || llvm::any_of(op->getResultTypes(), isF32);
    expected_ = RunWhole(operands_);
  }

  const ShardingRule& rule() const { return rule_; }

  Tensors RunWhole(const Tensors& operands) {
    return Run(Index(rule_.factors.size(), 1), Index(rule_.factors.size(), 0), operands);
  }

  // The op that `buildLocal` makes for one of these pieces, on these operands.
  Tensors Run(const Index& pieces, const Index& piece, const Tensors& operands) {
    mlir::OpBuilder builder(op_->getParentOfType<FuncOp>());
    llvm::SmallVector<mlir::Type> types;
    for (auto [type, dims] : llvm::zip_equal(op_->getOperandTypes(), rule_.operands)) {
      auto tensor = llvm::cast<mlir::RankedTensorType>(type);
      types.push_back(tensor.clone(localShape(tensor.getShape(), dims, pieces)));
    }
    auto function =
        FuncOp::create(builder, op_->getLoc(), "local", builder.getFunctionType(types, {}));
    builder.setInsertionPointToStart(function.addEntryBlock());
    auto first = [&](mlir::OpBuilder& builder, mlir::Location loc, int f) -> mlir::Value {
      int64_t index = piece[f] * (rule_.factors[f].size / pieces[f]);
      auto type = mlir::RankedTensorType::get({}, builder.getI64Type());
      return ir::ConstantOp::create(builder, loc, mlir::DenseElementsAttr::get(type, index));
    };
    mlir::Operation* local = op_.buildLocal(builder, function.getArguments(), {pieces, first});
    mlir::func::ReturnOp::create(builder, op_->getLoc(), local->getResults());
    function.setFunctionType(builder.getFunctionType(types, local->getResultTypes()));
    EXPECT_TRUE(succeeded(mlir::verify(function)));
    for (auto [result, dims, whole] :
         llvm::zip_equal(local->getResults(), rule_.results, op_->getResultTypes())) {
      auto tensor = llvm::cast<mlir::RankedTensorType>(whole);
      EXPECT_EQ(result.getType(), tensor.clone(localShape(tensor.getShape(), dims, pieces)));
    }
    auto interpreter = Interpreter::Create(function);
    function.erase();
    EXPECT_TRUE(interpreter.ok()) << interpreter.status();
    if (!interpreter.ok()) return {};
    auto results = interpreter->Run(Pointers(operands));
    EXPECT_TRUE(results.ok()) << results.status();
    return results.ok() ? *std::move(results) : Tensors();
  }

  // Cuts, runs, puts together, compares.
  void CheckPieces(const Index& pieces) {
    Tensors assembled;
    for (const HostTensor& result : expected_) assembled.emplace_back(result.spec());
    std::vector<std::vector<bool>> seen;
    for (const HostTensor& result : expected_) seen.emplace_back(result.spec().num_elements());
    ForEachIndex(pieces, [&](const Index& piece) {
      Tensors local;
      for (size_t i = 0; i < operands_.size(); ++i) {
        local.push_back(Piece(operands_[i], rule_.operands[i], pieces, piece));
      }
      Tensors results = Run(pieces, piece, local);
      ASSERT_EQ(results.size(), expected_.size());
      for (size_t i = 0; i < results.size(); ++i) {
        Combine(results[i], i, pieces, piece, &assembled[i], &seen[i]);
      }
    });
    Compare(assembled, "pieces");
  }

  void CheckLinear(llvm::ArrayRef<unsigned> group, std::mt19937* random) {
    Tensors first, second;
    for (size_t i = 0; i < operands_.size(); ++i) {
      first.push_back(Copy(operands_[i]));
      second.push_back(Copy(operands_[i]));
      if (!llvm::is_contained(group, static_cast<unsigned>(i))) continue;
      HostTensor part = RandomTensor(op_->getOperandTypes()[i], -1, 1, random);
      for (int64_t k = 0; k < part.spec().num_elements(); ++k) {
        second[i].set(k, part.get(k));
        first[i].set(k, operands_[i].get(k) - second[i].get(k));
      }
    }
    Tensors sum = RunWhole(first), more = RunWhole(second);
    for (size_t i = 0; i < sum.size(); ++i) {
      for (int64_t k = 0; k < sum[i].spec().num_elements(); ++k) {
        sum[i].set(k, sum[i].get(k) + more[i].get(k));
      }
    }
    Compare(sum, "summands");
  }

  // The op's decomposition, alone in a function.
  void CheckSteps(std::mt19937* random) {
    constexpr int64_t kOrigin = 7;
    mlir::OpBuilder builder(op_->getParentOfType<FuncOp>());
    auto function = FuncOp::create(builder, op_->getLoc(), "steps",
                                   builder.getFunctionType(op_->getOperandTypes(), {}));
    builder.setInsertionPointToStart(function.addEntryBlock());
    auto whole = llvm::cast<ShardableOpInterface>(builder.clone(*op_));
    whole->setOperands(function.getArguments());
    whole->setAttr("origin", builder.getI64IntegerAttr(kOrigin));
    llvm::SmallVector<mlir::Value> results = whole.decompose(builder);
    mlir::func::ReturnOp::create(builder, op_->getLoc(), results);
    whole->erase();
    function.setFunctionType(
        builder.getFunctionType(op_->getOperandTypes(), op_->getResultTypes()));
    ASSERT_TRUE(succeeded(mlir::verify(function)));
    for (mlir::Operation& op : function.getBody().front().without_terminator()) {
      EXPECT_EQ(op.getAttrOfType<mlir::IntegerAttr>("origin").getInt(), kOrigin)
          << op.getName().getStringRef().str();
    }
    for (mlir::BlockArgument argument : function.getArguments()) CheckStepsSplit(argument);

    auto interpreter = Interpreter::Create(function);
    ASSERT_TRUE(interpreter.ok()) << interpreter.status();
    auto values = interpreter->Run(Pointers(operands_));
    ASSERT_TRUE(values.ok()) << values.status();
    Compare(*values, "steps");
    CheckFunction(function, operands_, random);
    function.erase();
  }

 private:
  // Each op that takes the operand splits it by the factors that need steps.
  void CheckStepsSplit(mlir::BlockArgument operand) {
    for (auto [dim, factors] : llvm::enumerate(rule_.operands[operand.getArgNumber()])) {
      for (auto [place, f] : llvm::enumerate(factors)) {
        if (rule_.factors[f].kind != FactorKind::kSteps) continue;
        EXPECT_FALSE(operand.use_empty());
        for (mlir::OpOperand& use : operand.getUses()) {
          auto user = llvm::dyn_cast<ShardableOpInterface>(use.getOwner());
          ASSERT_TRUE(user);
          ShardingRule rule = user.getShardingRule();
          const ir::FactorList& own = rule.operands[use.getOperandNumber()][dim];
          ASSERT_GT(own.size(), place) << user->getName().getStringRef().str();
          EXPECT_EQ(rule.factors[own[place]].size, rule_.factors[f].size);
          EXPECT_NE(rule.factors[own[place]].kind, FactorKind::kSteps);
        }
      }
    }
  }

  HostTensor Piece(const HostTensor& whole, const TensorFactors& dims, const Index& pieces,
                   const Index& piece) {
    Cutting cutting(rule_, dims, Index(whole.spec().shape.begin(), whole.spec().shape.end()),
                    pieces);
    HostTensor local(
        {whole.spec().dtype, {cutting.local_shape().begin(), cutting.local_shape().end()}});
    int64_t next = 0;
    ForEachIndex(cutting.local_shape(), [&](const Index& index) {
      local.set(next++, whole.get(cutting.Global(piece, index)));
    });
    return local;
  }

  // Adds a piece's result to the whole: a factor that the result lacks makes summands or
  // candidates of a maximum, or the same value again.
  void Combine(const HostTensor& local, size_t result, const Index& pieces, const Index& piece,
               HostTensor* whole, std::vector<bool>* seen) {
    bool sum = false, max = false;
    for (size_t f = 0; f < pieces.size(); ++f) {
      if (pieces[f] == 1 || rule_.resultHas(result, f)) continue;
      sum |= rule_.factors[f].kind == FactorKind::kSum;
      max |= rule_.factors[f].kind == FactorKind::kMax;
    }
    ASSERT_FALSE(sum && max) << "a rule that mixes sums and maxima is not checked";
    Cutting cutting(rule_, rule_.results[result],
                    Index(whole->spec().shape.begin(), whole->spec().shape.end()), pieces);
    int64_t next = 0;
    ForEachIndex(cutting.local_shape(), [&](const Index& index) {
      int64_t at = cutting.Global(piece, index);
      double value = local.get(next++);
      if (!(*seen)[at]) {
        whole->set(at, value);
      } else if (sum) {
        // A parallel factor that the result lacks repeats summands: count each piece of it once.
        if (!IsRepetition(result, pieces, piece)) whole->set(at, whole->get(at) + value);
      } else if (max) {
        whole->set(at, std::max(whole->get(at), value));
      } else {
        EXPECT_TRUE(Agree(whole->get(at), value, f32_)) << whole->get(at) << " and " << value;
      }
      (*seen)[at] = true;
    });
  }

  bool IsRepetition(size_t result, const Index& pieces, const Index& piece) const {
    for (size_t f = 0; f < pieces.size(); ++f) {
      if (rule_.factors[f].kind == FactorKind::kParallel && !rule_.resultHas(result, f) &&
          piece[f] > 0) {
        return true;
      }
    }
    return false;
  }

  void Compare(const Tensors& actual, const char* what) {
    ASSERT_EQ(actual.size(), expected_.size());
    for (size_t i = 0; i < actual.size(); ++i) {
      for (int64_t k = 0; k < actual[i].spec().num_elements(); ++k) {
        ASSERT_TRUE(Agree(actual[i].get(k), expected_[i].get(k), f32_))
            << actual[i].get(k) << " instead of " << expected_[i].get(k) << " in result " << i
            << ", element " << k << " put together from " << what;
      }
    }
  }

  ShardableOpInterface op_;
  ShardingRule rule_;
  Tensors operands_;
  Tensors expected_;
  bool f32_ = false;
};

int64_t SmallestDivisor(int64_t size) {
  for (int64_t p = 2; p * p <= size; ++p) {
    if (size % p == 0) return p;
  }
  return size;
}

// The name of an op -> whether a case split it.
std::map<std::string, bool>& Coverage() {
  static auto* coverage = new std::map<std::string, bool>();
  return *coverage;
}

void CheckOp(OpCase* test, const std::string& name, std::mt19937* random) {
  const ShardingRule& rule = test->rule();
  int count = static_cast<int>(rule.factors.size());
  bool& split = Coverage()[name];
  for (int a = 0; a < count; ++a) {
    for (int b = a; b < count; ++b) {
      if (rule.factors[a].kind == FactorKind::kSteps) continue;
      if (rule.factors[b].kind == FactorKind::kSteps) continue;
      Index pieces(count, 1);
      pieces[a] = SmallestDivisor(rule.factors[a].size);
      pieces[b] = SmallestDivisor(rule.factors[b].size);
      if (pieces[a] <= 1 || pieces[b] <= 1) continue;
      SCOPED_TRACE(testing::Message() << "factors " << a << " and " << b);
      split = true;
      test->CheckPieces(pieces);
    }
  }
  for (const auto& group : rule.linear) test->CheckLinear(group, random);
  if (NeedsSteps(rule)) test->CheckSteps(random);
}

void CheckFunction(FuncOp function, const Tensors& arguments, std::mt19937* random) {
  llvm::SmallVector<mlir::Operation*> ops;
  for (mlir::Operation& op : function.getBody().front().without_terminator()) ops.push_back(&op);
  for (mlir::Operation* op : ops) {
    SCOPED_TRACE(op->getName().getStringRef().str());
    auto shardable = llvm::dyn_cast<ShardableOpInterface>(op);
    ASSERT_TRUE(shardable) << "has no sharding rule";
    auto operands =
        ValuesOf(function, llvm::SmallVector<mlir::Value>(op->getOperands()), arguments);
    ASSERT_TRUE(operands.ok()) << operands.status();
    OpCase test(shardable, *std::move(operands));
    CheckOp(&test, op->getName().getStringRef().str(), random);
  }
}

class ShardingRules : public ::testing::TestWithParam<FunctionCase> {};

TEST_P(ShardingRules, PiecesMakeTheWhole) {
  auto module = ParseCases(GetParam().path);
  ASSERT_TRUE(module);
  auto function = module->lookupSymbol<FuncOp>(GetParam().function);
  std::mt19937 random(static_cast<unsigned>(std::hash<std::string>()(GetParam().function)));
  Tensors arguments = RandomArguments(function, &random);
  CheckFunction(function, arguments, &random);

  llvm::SmallVector<unsigned> wanted = floatArguments(function);
  if (wanted.empty() || function->hasAttr("test.forward_only")) return;
  mlir::FailureOr<VjpFunction> vjp = buildVjpFunction(function, wanted);
  ASSERT_TRUE(succeeded(vjp));
  Tensors cotangents;
  for (mlir::Type type : function.getResultTypes()) {
    if (llvm::isa<mlir::FloatType>(mlir::getElementTypeOrSelf(type))) {
      cotangents.push_back(RandomTensor(type, -1, 1, &random));
    }
  }
  auto inputs = VjpArguments(function, *vjp, arguments, cotangents);
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
  for (const FunctionCase& test : AllCases()) {
    auto module = ParseCases(test.path);
    auto function = module->lookupSymbol<FuncOp>(test.function);
    llvm::SmallVector<unsigned> wanted = floatArguments(function);
    if (!wanted.empty() && !function->hasAttr("test.forward_only")) {
      ASSERT_TRUE(succeeded(buildVjpFunction(function, wanted)));
    }
    module->walk([](ShardableOpInterface op) {
      bool splits = llvm::any_of(op.getShardingRule().factors,
                                 [](const ir::Factor& factor) { return factor.size > 1; });
      Coverage()[op->getName().getStringRef().str()] |= splits;
    });
  }
  int count = 0;
  for (mlir::RegisteredOperationName op : CaseContext().getRegisteredOperations()) {
    if (!op.hasInterface<ShardableOpInterface>()) continue;
    std::string name = op.getStringRef().str();
    ++count;
    auto found = Coverage().find(name);
    if (found == Coverage().end()) {
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
