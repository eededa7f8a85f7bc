#include "passes/raise/widened_op.h"

#include <algorithm>
#include <tuple>

#include "ir/interfaces/interfaces.h"
#include "ir/interfaces/local_pieces.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/IR/Verifier.h"
#include "passes/raise/match.h"

namespace oriel {

namespace {

using ir::ShardingRule;
using mlir::Operation;
using mlir::Value;

// Where a factor, outermost in its dimension, is in a tensor.
std::optional<int64_t> dimOf(const ir::TensorFactors& dims, int factor) {
  for (auto [dim, factors] : llvm::enumerate(dims)) {
    if (!factors.empty() && factors.front() == factor) return dim;
  }
  return std::nullopt;
}

// A factor along which the pieces are brought together.
struct Way {
  int factor;
  int64_t size;         // of the factor
  bool isBehind;        // the index of the piece is behind that of the factor, not in front
  bool repeatsOnes;     // also what broadcasts as a rule
  int64_t moved = 0;    // elements that are transposed or repeated
  double distance = 1;  // of the transpose that moves the pieces furthest, in elements passed

  auto cost() const { return std::tuple(moved, distance, size != 1); }
};

class Widening {
 public:
  Widening(StackBuilder& builder, Operation* piece, int64_t count,
           llvm::ArrayRef<std::optional<Stack>> operands, const ShardingRule& rule)
      : builder_(builder), piece_(piece), count_(count), operands_(operands), rule_(rule) {}

  // The cheapest first; of equal ones those that make a dimension of size 1 one of pieces, and then
  // those that leave the factor outermost, by which ranks share.
  llvm::SmallVector<Way> ways(llvm::function_ref<bool(unsigned)> isUsed) const {
    llvm::SmallVector<Way> ways;
    for (auto [factor, of] : llvm::enumerate(rule_.factors)) {
      if (of.kind != ir::FactorKind::kParallel) continue;
      for (bool isBehind : {true, false}) {
        if (isBehind && of.size == 1) continue;
        for (bool repeatsOnes : {false, true}) {
          Way way{static_cast<int>(factor), of.size, isBehind, repeatsOnes};
          if (repeatsOnes && !sharesOnes(way)) continue;
          if (givesUsed(way, isUsed) && addCosts(way)) ways.push_back(way);
        }
      }
    }
    llvm::stable_sort(ways,
                      [](const Way& one, const Way& other) { return one.cost() < other.cost(); });
    return ways;
  }

  // Nothing, of which nothing is left, if the op that is made would not be cut into the pieces.
  Operation* build(const Way& way) {
    const size_t begin = builder_.made().size();
    llvm::SmallVector<Value> values;
    for (auto [i, stack] : llvm::enumerate(operands_)) {
      Value value = piece_->getOperand(i);
      if (stack) value = builder_.present(*stack, *placeIn(rule_.operands[i], way));
      if (mustRepeat(i, way)) {
        value = builder_.repeat(value, count_, *placeIn(rule_.operands[i], way));
      }
      values.push_back(value);
    }
    Operation* op = builder_.track(create(way, values));
    mlir::ScopedDiagnosticHandler silent(op->getContext(), [](mlir::Diagnostic&) {});
    if (succeeded(mlir::verify(op)) && hasWideRule(op, way) && isCutInto(op, way)) return op;
    builder_.undo(begin);
    return nullptr;
  }

  std::optional<StackingPlace> placeIn(const ir::TensorFactors& dims, const Way& way) const {
    std::optional<int64_t> dim = dimOf(dims, way.factor);
    if (!dim) return std::nullopt;
    return StackingPlace{*dim, way.isBehind ? way.size : 1};
  }

 private:
  // Whether the results that something uses have the factor.
  bool givesUsed(const Way& way, llvm::function_ref<bool(unsigned)> isUsed) const {
    return llvm::all_of(llvm::enumerate(rule_.results), [&](auto entry) {
      return !isUsed(entry.index()) || dimOf(entry.value(), way.factor);
    });
  }

  // The size, along the factor, of an operand that all share; 0 if it is none, or lacks the factor.
  int64_t sharedSize(unsigned operand, const Way& way) const {
    std::optional<int64_t> dim = dimOf(rule_.operands[operand], way.factor);
    if (operands_[operand] || !dim) return 0;
    return tensorType(piece_->getOperand(operand)).getDimSize(*dim);
  }
  bool sharesOnes(const Way& way) const {
    return llvm::any_of(llvm::seq<unsigned>(operands_.size()),
                        [&](unsigned i) { return sharedSize(i, way) == 1; });
  }
  bool mustRepeat(unsigned operand, const Way& way) const {
    return sharedSize(operand, way) > (way.repeatsOnes ? 0 : 1);
  }

  // False where an operand can't be brought together so.
  bool addCosts(Way& way) const {
    int64_t held = 0, repeated = 0;
    for (auto [i, stack] : llvm::enumerate(operands_)) {
      std::optional<StackingPlace> place = placeIn(rule_.operands[i], way);
      if (!stack) {
        if (mustRepeat(i, way)) {
          repeated += count_ * tensorType(piece_->getOperand(i)).getNumElements();
        }
        continue;
      }
      if (!place) return false;
      std::optional<Restacking> moved = restack(stack->shape, *place);
      if (!moved) return false;
      const int64_t elements = tensorType(stack->value).getNumElements();
      held += elements;
      if (moved->split.empty()) continue;
      way.moved += elements;
      const auto from = static_cast<double>(stack->shape.outer);
      const auto to = static_cast<double>(stack->shape.outerAt(*place));
      way.distance = std::max(way.distance, std::max(from, to) / std::min(from, to));
    }
    for (Value result : piece_->getResults()) held += count_ * tensorType(result).getNumElements();
    way.moved += repeated;
    return repeated <= held;
  }

  // The op with `count_` times as much along the factor.
  Operation* create(const Way& way, mlir::ValueRange operands) {
    mlir::OperationState state(piece_->getLoc(), piece_->getName(), operands, {},
                               piece_->getAttrs());
    for (auto [type, dims] : llvm::zip_equal(piece_->getResultTypes(), rule_.results)) {
      auto tensor = llvm::cast<mlir::RankedTensorType>(type);
      Shape shape(tensor.getShape());
      if (std::optional<int64_t> dim = dimOf(dims, way.factor)) shape[*dim] *= count_;
      state.addTypes(tensor.clone(shape));
    }
    if (auto slice = llvm::dyn_cast<ir::SliceOp>(piece_)) {
      Shape limits(slice.getLimits());
      limits[*dimOf(rule_.operands[0], way.factor)] *= count_;
      state.attributes.set(slice.getLimitsAttrName(),
                           builder_.rewriter().getDenseI64ArrayAttr(limits));
    }
    return builder_.rewriter().create(state);
  }

  // Whether its rule is the one of a piece with the larger factor, which what all share lacks.
  bool hasWideRule(Operation* op, const Way& way) const {
    ShardingRule expected = rule_;
    expected.factors[way.factor].size *= count_;
    for (auto [i, stack] : llvm::enumerate(operands_)) {
      if (stack || mustRepeat(i, way)) continue;
      if (auto dim = dimOf(expected.operands[i], way.factor)) {
        ir::FactorList& factors = expected.operands[i][*dim];
        factors.erase(factors.begin());
      }
    }
    const ShardingRule rule = llvm::cast<ir::ShardableOpInterface>(op).getShardingRule();
    auto equal = [](const ir::Factor& one, const ir::Factor& other) {
      return one.size == other.size && one.kind == other.kind;
    };
    return std::equal(rule.factors.begin(), rule.factors.end(), expected.factors.begin(),
                      expected.factors.end(), equal) &&
           rule.operands == expected.operands && rule.results == expected.results;
  }

  // Whether partition would make the piece of it, with the attributes that it has, wherever it is:
  // for ops whose attributes depend on a size, or whose elements on their place.
  bool isCutInto(Operation* op, const Way& way) const {
    llvm::SmallVector<int64_t> counts(rule_.factors.size(), 1);
    counts[way.factor] = count_;
    bool dependsOnPlace = false;
    const ir::LocalPieces pieces(counts, [&](mlir::OpBuilder&, mlir::Location, int) {
      dependsOnPlace = true;
      return piece_->getOperand(0);
    });
    mlir::OpBuilder::InsertionGuard guard(builder_.rewriter());
    Operation* local = llvm::cast<ir::ShardableOpInterface>(op).buildLocal(
        builder_.rewriter(), piece_->getOperands(), pieces);
    const bool isPiece =
        !dependsOnPlace && mlir::OperationEquivalence::isEquivalentTo(
                               local, piece_, mlir::OperationEquivalence::IgnoreLocations);
    builder_.rewriter().eraseOp(local);
    return isPiece;
  }

  StackBuilder& builder_;
  Operation* piece_;
  int64_t count_;
  llvm::ArrayRef<std::optional<Stack>> operands_;
  const ShardingRule& rule_;
};

}  // namespace

std::optional<llvm::SmallVector<std::optional<Stack>>> widen(
    StackBuilder& builder, Operation* piece, int64_t count,
    llvm::ArrayRef<std::optional<Stack>> operands, llvm::function_ref<bool(unsigned)> isUsed) {
  auto shardable = llvm::dyn_cast<ir::ShardableOpInterface>(piece);
  if (!shardable) return std::nullopt;
  const ShardingRule rule = shardable.getShardingRule();
  Widening widening(builder, piece, count, operands, rule);
  for (const Way& way : widening.ways(isUsed)) {
    Operation* op = widening.build(way);
    if (!op) continue;
    llvm::SmallVector<std::optional<Stack>> results(piece->getNumResults());
    for (auto [i, result] : llvm::enumerate(piece->getResults())) {
      std::optional<StackingPlace> place = widening.placeIn(rule.results[i], way);
      if (!place) continue;
      StackedShape shape{Shape(shapeOf(result)), count, 1};
      shape.outer = shape.outerAt(*place);
      results[i] = Stack{op->getResult(i), std::move(shape)};
    }
    return results;
  }
  return std::nullopt;
}

}  // namespace oriel
