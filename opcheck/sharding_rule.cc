#include "opcheck/sharding_rule.h"

#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "ir/oriel/oriel.h"
#include "mlir/IR/Verifier.h"
#include "runtime/base/status.h"

namespace oriel {
namespace {

using ir::FactorKind;
using ir::localShape;
using ir::ShardableOpInterface;
using ir::ShardingRule;
using ir::TensorFactors;
using mlir::func::FuncOp;
using Index = std::vector<int64_t>;  // by factor, or by dimension

// Calls f(index) for each index below `shape` in row-major order.
template <typename F>
void forEachIndex(const Index& shape, F f) {
  const int64_t count =
      std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  Index index(shape.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    f(index);
    for (int dim = static_cast<int>(shape.size()) - 1; dim >= 0; --dim) {
      if (++index[dim] < shape[dim]) break;
      index[dim] = 0;
    }
  }
}

int64_t linearIndex(const Index& index, const Index& shape) {
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

  const Index& localSizes() const { return local_; }

  // Where an element of a piece lies in the whole. The factors of a dimension are digits of its
  // index, outermost first; below them lies what the rule does not split.
  int64_t placeOf(const Index& piece, const Index& localIndex) const {
    Index global(shape_.size());
    for (size_t dim = 0; dim < shape_.size(); ++dim) {
      int64_t rest = local_[dim], digits = localIndex[dim], index = 0;
      for (int f : dims_[dim]) {
        const int64_t size = rule_.factors[f].size / pieces_[f];
        rest /= size;
        index = index * rule_.factors[f].size + piece[f] * size + digits / rest;
        digits %= rest;
      }
      global[dim] = index * rest + digits;
    }
    return linearIndex(global, shape_);
  }

 private:
  const ShardingRule& rule_;
  const TensorFactors& dims_;
  Index shape_, pieces_, local_;
};

bool needsSteps(const ShardingRule& rule) {
  return llvm::any_of(rule.factors,
                      [](const ir::Factor& factor) { return factor.kind == FactorKind::kSteps; });
}

const char* kindName(FactorKind kind) {
  switch (kind) {
    case FactorKind::kParallel:
      return "parallel";
    case FactorKind::kSum:
      return "summed";
    case FactorKind::kMax:
      return "a maximum";
    case FactorKind::kSteps:
      break;
  }
  return "in steps";
}

int64_t smallestDivisor(int64_t size) {
  for (int64_t p = 2; p * p <= size; ++p) {
    if (size % p == 0) return p;
  }
  return size;
}

Index shapeOf(const HostTensor& tensor) {
  return {tensor.spec().shape.begin(), tensor.spec().shape.end()};
}

// One op, and values of its operands. After the first failure it says no more.
class OpCheck {
 public:
  OpCheck(ShardableOpInterface op, Tensors operands, std::mt19937* random, OnFailure onFailure)
      : op_(op),
        rule_(op.getShardingRule()),
        operands_(std::move(operands)),
        random_(random),
        onFailure_(onFailure) {
    for (mlir::Type type : op->getOperandTypes()) allow(type);
    for (mlir::Type type : op->getResultTypes()) allow(type);
  }

  void run(CutCounts* cuts) {
    if (auto misfit = ir::misfitOf(rule_, op_->getOperandTypes(), op_->getResultTypes())) {
      return fail(absl::StrCat("has a sharding rule that ", *misfit));
    }
    const size_t count = rule_.factors.size();
    expected_ = runWhole(operands_);
    for (size_t a = 0; a < count; ++a) {
      for (size_t b = a; b < count; ++b) {
        Index pieces(count, 1);
        if (!cut(a, &pieces) || !cut(b, &pieces)) continue;
        if (isFailed_) return;
        ++(*cuts)[op_->getName().getStringRef().str()];
        checkPieces(pieces);
      }
    }
    for (const auto& group : rule_.linear) checkLinear(group);
    if (needsSteps(rule_) && !isFailed_) checkSteps(cuts);
  }

 private:
  // Of sums in another order, in the coarsest of the op's floats.
  void allow(mlir::Type type) {
    auto element = llvm::dyn_cast<mlir::FloatType>(mlir::getElementTypeOrSelf(type));
    if (!element) return;
    const double own = element.isF64() ? 1e-9 : element.isF32() ? 1e-5 : 0x1p-6;
    tolerance_ = std::max(tolerance_, own);
  }

  void fail(const std::string& what) {
    if (!isFailed_) onFailure_(op_, what);
    isFailed_ = true;
  }

  bool cut(size_t factor, Index* pieces) const {
    if (rule_.factors[factor].kind == FactorKind::kSteps) return false;
    (*pieces)[factor] = smallestDivisor(rule_.factors[factor].size);
    return (*pieces)[factor] > 1;
  }

  // "cut into 2 along factor 0 (summed, of 4)"
  std::string describe(const Index& pieces) const {
    std::string text;
    for (size_t f = 0; f < pieces.size(); ++f) {
      if (pieces[f] == 1) continue;
      absl::StrAppend(&text, text.empty() ? "cut into " : " and into ", pieces[f], " along factor ",
                      f, " (", kindName(rule_.factors[f].kind), ", of ", rule_.factors[f].size,
                      ")");
    }
    return text;
  }

  Tensors runWhole(const Tensors& operands) {
    const Index whole(rule_.factors.size(), 1), first(rule_.factors.size(), 0);
    return runPiece(whole, first, operands);
  }

  // The op that `buildLocal` makes for one of these pieces, on these operands; nothing, after a
  // failure, if it can't be run.
  Tensors runPiece(const Index& pieces, const Index& piece, const Tensors& operands) {
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
      const int64_t index = piece[f] * (rule_.factors[f].size / pieces[f]);
      auto type = mlir::RankedTensorType::get({}, builder.getI64Type());
      return ir::ConstantOp::create(builder, loc, mlir::DenseElementsAttr::get(type, index));
    };
    mlir::Operation* local = op_.buildLocal(builder, function.getArguments(), {pieces, first});
    if (!local) {
      function.erase();
      fail(absl::StrCat(describe(pieces), ": no op is built for a piece"));
      return {};
    }
    mlir::func::ReturnOp::create(builder, op_->getLoc(), local->getResults());
    function.setFunctionType(builder.getFunctionType(types, local->getResultTypes()));
    absl::StatusOr<Tensors> results = absl::InternalError("the op for a piece is not valid");
    if (succeeded(mlir::verify(function))) {
      checkTypes(local, pieces);
      absl::StatusOr<Interpreter> interpreter = Interpreter::create(function);
      results = interpreter.ok() ? interpreter->run(pointersTo(operands)) : interpreter.status();
    }
    function.erase();
    if (results.ok()) return *std::move(results);
    const std::string cuts = describe(pieces);
    fail(absl::StrCat(cuts, cuts.empty() ? "" : ": ", std::string(results.status().message())));
    return {};
  }

  void checkTypes(mlir::Operation* local, const Index& pieces) {
    for (auto [result, dims, whole] :
         llvm::zip_equal(local->getResults(), rule_.results, op_->getResultTypes())) {
      auto tensor = llvm::cast<mlir::RankedTensorType>(whole);
      const mlir::Type expected = tensor.clone(localShape(tensor.getShape(), dims, pieces));
      if (result.getType() == expected) continue;
      std::string text;
      llvm::raw_string_ostream(text) << result.getType() << " where the rule says " << expected;
      fail(absl::StrCat(describe(pieces), ": result ", result.getResultNumber(), " is ", text));
    }
  }

  // Cuts, runs, puts together, compares.
  void checkPieces(const Index& pieces) {
    const std::string what = describe(pieces);
    Tensors assembled;
    std::vector<std::vector<bool>> seen;
    for (const HostTensor& result : expected_) {
      assembled.emplace_back(result.spec());
      seen.emplace_back(result.spec().num_elements());
    }
    forEachIndex(pieces, [&](const Index& piece) {
      if (isFailed_) return;
      Tensors local;
      for (size_t i = 0; i < operands_.size(); ++i) {
        local.push_back(pieceOf(operands_[i], rule_.operands[i], pieces, piece));
      }
      const Tensors results = runPiece(pieces, piece, local);
      for (size_t i = 0; i < results.size() && !isFailed_; ++i) {
        combine(results[i], i, pieces, piece, &assembled[i], &seen[i]);
      }
    });
    compare(assembled, what);
  }

  HostTensor pieceOf(const HostTensor& whole, const TensorFactors& dims, const Index& pieces,
                     const Index& piece) {
    const Cutting cutting(rule_, dims, shapeOf(whole), pieces);
    HostTensor local(
        {whole.spec().dtype, {cutting.localSizes().begin(), cutting.localSizes().end()}});
    int64_t next = 0;
    forEachIndex(cutting.localSizes(), [&](const Index& index) {
      local.set(next++, whole.get(cutting.placeOf(piece, index)));
    });
    return local;
  }

  // Adds a piece's result to the whole: a factor that the result lacks makes summands or
  // candidates of a maximum, or the same value again.
  void combine(const HostTensor& local, size_t result, const Index& pieces, const Index& piece,
               HostTensor* whole, std::vector<bool>* seen) {
    bool isSum = false, isMax = false;
    for (size_t f = 0; f < pieces.size(); ++f) {
      if (pieces[f] == 1 || rule_.resultHas(result, f)) continue;
      isSum |= rule_.factors[f].kind == FactorKind::kSum;
      isMax |= rule_.factors[f].kind == FactorKind::kMax;
    }
    // No order is defined between the two.
    if (isSum && isMax) return fail("a rule with sums and maxima of one result can't be checked");
    const Cutting cutting(rule_, rule_.results[result], shapeOf(*whole), pieces);
    int64_t next = 0;
    forEachIndex(cutting.localSizes(), [&](const Index& index) {
      const int64_t at = cutting.placeOf(piece, index);
      const double value = local.get(next++);
      if (!(*seen)[at]) {
        whole->set(at, value);
      } else if (isSum) {
        // A parallel factor that the result lacks repeats summands: count each piece of it once.
        if (!isRepetition(result, pieces, piece)) whole->set(at, whole->get(at) + value);
      } else if (isMax) {
        whole->set(at, std::max(whole->get(at), value));
      } else if (!agree(whole->get(at), value)) {
        fail(absl::StrCat(describe(pieces), ": element ", at, " of result ", result,
                          ", which the rule does not cut, is ", whole->get(at),
                          " by one piece and ", value, " by another"));
      }
      (*seen)[at] = true;
    });
  }

  bool isRepetition(size_t result, const Index& pieces, const Index& piece) const {
    for (size_t f = 0; f < pieces.size(); ++f) {
      if (rule_.factors[f].kind == FactorKind::kParallel && !rule_.resultHas(result, f) &&
          piece[f] > 0) {
        return true;
      }
    }
    return false;
  }

  void checkLinear(llvm::ArrayRef<unsigned> group) {
    Tensors first, second;
    for (size_t i = 0; i < operands_.size(); ++i) {
      first.push_back(operands_[i].copy());
      second.push_back(operands_[i].copy());
      if (!llvm::is_contained(group, static_cast<unsigned>(i))) continue;
      const HostTensor part = randomTensor(op_->getOperandTypes()[i], -1, 1, random_);
      for (int64_t k = 0; k < part.spec().num_elements(); ++k) {
        second[i].set(k, part.get(k));
        first[i].set(k, operands_[i].get(k) - second[i].get(k));
      }
    }
    Tensors sum = runWhole(first);
    const Tensors more = runWhole(second);
    if (isFailed_) return;
    for (size_t i = 0; i < sum.size(); ++i) {
      for (int64_t k = 0; k < sum[i].spec().num_elements(); ++k) {
        sum[i].set(k, sum[i].get(k) + more[i].get(k));
      }
    }
    std::string operands;
    for (unsigned operand : group)
      absl::StrAppend(&operands, operands.empty() ? "" : ", ", operand);
    compare(sum, absl::StrCat("as if linear in operands {", operands, "}, of two summands"));
  }

  // The op's decomposition, alone in a function.
  void checkSteps(CutCounts* cuts) {
    constexpr int64_t kOrigin = 7;
    mlir::OpBuilder builder(op_->getParentOfType<FuncOp>());
    auto function = FuncOp::create(builder, op_->getLoc(), "steps",
                                   builder.getFunctionType(op_->getOperandTypes(), {}));
    builder.setInsertionPointToStart(function.addEntryBlock());
    auto whole = llvm::cast<ShardableOpInterface>(builder.clone(*op_));
    whole->setOperands(function.getArguments());
    whole->setAttr("origin", builder.getI64IntegerAttr(kOrigin));
    const llvm::SmallVector<mlir::Value> results = whole.decompose(builder);
    mlir::func::ReturnOp::create(builder, op_->getLoc(), results);
    whole->erase();
    function.setFunctionType(
        builder.getFunctionType(op_->getOperandTypes(), op_->getResultTypes()));
    if (failed(mlir::verify(function))) {
      fail("decomposed, is not valid");
    } else {
      checkStepsOf(function, kOrigin, cuts);
    }
    function.erase();
  }

  void checkStepsOf(FuncOp function, int64_t origin, CutCounts* cuts) {
    for (mlir::Operation& op : function.getBody().front().without_terminator()) {
      auto own = op.getAttrOfType<mlir::IntegerAttr>("origin");
      if (own && own.getInt() == origin) continue;
      return fail(absl::StrCat("decomposed, has an ", op.getName().getStringRef().str(),
                               " without the op's attribute `origin`"));
    }
    for (mlir::BlockArgument argument : function.getArguments()) checkStepsSplit(argument);
    absl::StatusOr<Interpreter> interpreter = Interpreter::create(function);
    const absl::StatusOr<Tensors> values =
        interpreter.ok() ? interpreter->run(pointersTo(operands_)) : interpreter.status();
    if (!values.ok()) return fail(absl::StrCat("decomposed: ", values.status().message()));
    compare(*values, "decomposed");
    if (isFailed_) return;
    auto ofStep = [&](mlir::Operation* step, const std::string& what) {
      fail(absl::StrCat("decomposed: ", step->getName().getStringRef().str(), ": ", what));
    };
    checkRulesByValue(function, operands_, random_, ofStep, cuts);
  }

  // Each op that takes the operand splits it by the factors that need steps.
  void checkStepsSplit(mlir::BlockArgument operand) {
    for (auto [dim, factors] : llvm::enumerate(rule_.operands[operand.getArgNumber()])) {
      for (auto [place, f] : llvm::enumerate(factors)) {
        if (rule_.factors[f].kind != FactorKind::kSteps) continue;
        bool isSplit = !operand.use_empty();
        for (mlir::OpOperand& use : operand.getUses()) {
          auto user = llvm::dyn_cast<ShardableOpInterface>(use.getOwner());
          isSplit &=
              user && splits(user, use.getOperandNumber(), dim, place, rule_.factors[f].size);
        }
        if (isSplit) continue;
        fail(absl::StrCat("decomposed, does not split dimension ", dim, " of operand ",
                          operand.getArgNumber(), " by factor ", f, ", which was to be"));
      }
    }
  }

  static bool splits(ShardableOpInterface user, unsigned operand, size_t dim, size_t place,
                     int64_t size) {
    const ShardingRule rule = user.getShardingRule();
    const ir::FactorList& own = rule.operands[operand][dim];
    return own.size() > place && rule.factors[own[place]].size == size &&
           rule.factors[own[place]].kind != FactorKind::kSteps;
  }

  // Whether two values are the same but for rounding.
  bool agree(double actual, double expected) const {
    if (actual == expected || (std::isnan(actual) && std::isnan(expected))) return true;
    return std::abs(actual - expected) <= tolerance_ * std::max(1.0, std::abs(expected));
  }

  void compare(const Tensors& actual, const std::string& what) {
    for (size_t i = 0; i < actual.size() && !isFailed_; ++i) {
      for (int64_t k = 0; k < actual[i].spec().num_elements(); ++k) {
        if (agree(actual[i].get(k), expected_[i].get(k))) continue;
        return fail(absl::StrCat(what, ": element ", k, " of result ", i, " is ", actual[i].get(k),
                                 ", of the whole op ", expected_[i].get(k)));
      }
    }
  }

  ShardableOpInterface op_;
  ShardingRule rule_;
  Tensors operands_;
  std::mt19937* random_;
  OnFailure onFailure_;
  Tensors expected_;
  double tolerance_ = 1e-9;  // relative to max(1, |expected|)
  bool isFailed_ = false;
};

}  // namespace

void checkRulesByValue(FuncOp function, const Tensors& arguments, std::mt19937* random,
                       OnFailure onFailure, CutCounts* cuts) {
  llvm::SmallVector<mlir::Operation*> ops;
  for (mlir::Operation& op : function.getBody().front().without_terminator()) ops.push_back(&op);
  for (mlir::Operation* op : ops) {
    if (!op->hasTrait<mlir::OpTrait::ConstantLike>())
      (*cuts)[op->getName().getStringRef().str()] += 0;
    auto shardable = llvm::dyn_cast<ShardableOpInterface>(op);
    if (!shardable) continue;
    absl::StatusOr<Tensors> operands =
        valuesOf(function, llvm::SmallVector<mlir::Value>(op->getOperands()), arguments);
    if (!operands.ok()) return onFailure(function, std::string(operands.status().message()));
    OpCheck(shardable, *std::move(operands), random, onFailure).run(cuts);
  }
}

}  // namespace oriel
