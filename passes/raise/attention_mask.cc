#include "passes/raise/attention_mask.h"

#include <cmath>
#include <limits>

#include "ir/oriel/builders.h"
#include "mlir/IR/Matchers.h"
#include "passes/raise/match.h"

namespace oriel {

using mlir::Value;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool hides(double number) { return number <= kLowestScore; }

struct AddedChoice {
  KeyChoice choice;
  double low;
};

// A choice between 0 and a number that hides, which is added to scores.
std::optional<AddedChoice> matchAddedChoice(Value added) {
  Value core = withoutRepetition(added);
  if (auto select = core.getDefiningOp<ir::SelectOp>()) {
    std::optional<double> onTrue = splatValue(select.getOnTrue());
    std::optional<double> onFalse = splatValue(select.getOnFalse());
    if (!onTrue || !onFalse) return std::nullopt;
    bool keepsWhereTrue = *onTrue == 0.0;
    double kept = keepsWhereTrue ? *onTrue : *onFalse, low = keepsWhereTrue ? *onFalse : *onTrue;
    if (kept != 0.0 || !hides(low)) return std::nullopt;
    return AddedChoice{{select.getCondition(), {}, keepsWhereTrue}, low};
  }
  // The same, folded.
  mlir::DenseElementsAttr table;
  if (!mlir::matchPattern(core, mlir::m_Constant(&table)) || table.empty() ||
      !llvm::isa<mlir::FloatType>(table.getElementType())) {
    return std::nullopt;
  }
  auto type = mlir::RankedTensorType::get(table.getType().getShape(),
                                          mlir::IntegerType::get(added.getContext(), 1));
  llvm::SmallVector<bool> visible;
  double low = -kInfinity;
  // A splat, which may be huge, has one element.
  int64_t count = table.isSplat() ? 1 : table.getNumElements();
  for (const llvm::APFloat& element : llvm::make_range(
           table.value_begin<llvm::APFloat>(), table.value_begin<llvm::APFloat>() + count)) {
    double number = element.convertToDouble();
    if (number != 0.0 && !hides(number)) return std::nullopt;
    visible.push_back(number == 0.0);
    if (number != 0.0) low = std::max(low, number);
  }
  return AddedChoice{{Value(), mlir::DenseElementsAttr::get(type, visible), true}, low};
}

}  // namespace

void AttentionMask::add(Value added, int64_t rank, double factor) {
  auto choice = factor == 1 ? matchAddedChoice(added) : std::nullopt;
  if (choice) {
    hidden_.push_back({choice->choice, choice->low, rank, added});
  } else {
    added_.push_back({added, rank, factor});
  }
}

void AttentionMask::hide(const KeyChoice& choice, double low, int64_t rank, bool last) {
  hidden_.push_back({choice, low, rank, Value(), last});
}

void AttentionMask::keep(Value mask) { hide({mask}, -kInfinity, 4, true); }

// Whether large negative numbers hide as well as -infinity does. They do if every query sees a key;
// else softmax spreads over what is hidden. That is known of causality and windows, however many,
// and of a single term; and if nothing else that is added can hide. Beside a sink softmax spreads
// over nothing that is hidden.
bool AttentionMask::finiteIsBoolean() const {
  if (sunk_) return true;
  bool structural = true, seeing = true;
  for (const Hidden& term : hidden_) {
    VisibleKeys keys(term.choice, queries_, keys_);
    structural = structural && keys.rest().empty();
    seeing = seeing && keys.everyQuerySees();
  }
  bool alone = hidden_.size() == 1 && !structured_;
  bool seen = seeing && (alone || (structural && (!structured_ || keys_ >= queries_)));
  return seen && !addedMayHide();
}

bool AttentionMask::addedMayHide() const {
  return llvm::any_of(added_, [](const Added& term) {
    return !(std::abs(term.factor) <= 1) || mayHide(term.value);
  });
}

// Whether queries that see nothing have the same score for all keys, whatever it would have been
// else: all that hides replaces the scores by the same number, at the end.
bool AttentionMask::spreadsEvenly() const {
  return !structured_ && !hidden_.empty() && !addedMayHide() &&
         llvm::all_of(hidden_, [&](const Hidden& term) {
           return !term.added && term.last && term.low != -kInfinity && term.low == hidden_[0].low;
         });
}

bool AttentionMask::resolve() {
  llvm::SmallVector<Hidden> rest;
  bool finiteIsBoolean = this->finiteIsBoolean();
  if (!finiteIsBoolean && spreadsEvenly()) {
    spread_ = hidden_;
    for (Hidden& term : spread_) term.choice.value = withoutRepetition(term.choice.value);
    finiteIsBoolean = true;
  }
  for (const Hidden& term : hidden_) {
    if (term.low != -kInfinity && !finiteIsBoolean) {
      if (term.added) {
        added_.push_back({term.added, term.rank});
        continue;
      }
      // As a sum with what it replaces it would have other cotangents.
      return false;
    }
    VisibleKeys keys(term.choice, queries_, keys_);
    simpler_ = simpler_ || keys.isSimpler() || term.added;
    causal_ = causal_ || keys.causal();
    if (keys.window() > 0)
      window_ = window_ == 0 ? keys.window() : std::min(window_, keys.window());
    for (const KeyChoice& choice : keys.rest()) {
      rest.push_back({choice, -kInfinity, term.rank, Value()});
    }
  }
  hidden_ = std::move(rest);
  for (const Added& term : added_) {
    // The cotangent of a mask is made of all scores once more: a learned bias (of relative
    // positions) stays outside.
    if (dependsOnParameter(term.value)) return false;
    if (!rank4Shape(tensorType(term.value), term.rank)) return false;
  }
  auto hasRank4Shape = [&](const Hidden& term) {
    const KeyChoice& choice = term.choice;
    mlir::ShapedType type = choice.table ? choice.table.getType() : tensorType(choice.value);
    return rank4Shape(type, term.rank).has_value();
  };
  return llvm::all_of(hidden_, hasRank4Shape) && llvm::all_of(spread_, hasRank4Shape);
}

std::optional<AttentionMask::Shape> AttentionMask::rank4Shape(mlir::ShapedType type,
                                                              int64_t rank) const {
  Shape shape = llvm::to_vector(type.getShape());
  while (static_cast<int64_t>(shape.size()) > rank && shape.front() == 1) {
    shape.erase(shape.begin());
  }
  int64_t own = shape.size();
  if (own > rank) return std::nullopt;
  shape.insert(shape.begin(), rank - own, 1);
  if (rank < 4) shape.insert(shape.begin(), 4 - rank, 1);
  if (rank == 3) {
    int64_t merged = shape[1];
    if (merged == 1) return shape;
    if (merged != batch_ * heads_) return std::nullopt;
    shape[0] = batch_;
    shape[1] = heads_;
  } else if (rank == 5) {
    int64_t merged = shape[1] * shape[2];
    if (merged != 1 && merged != heads_) return std::nullopt;
    shape.erase(shape.begin() + 1);
    shape[1] = merged;
  } else if (rank > 5) {
    return std::nullopt;
  }
  return shape;
}

Value AttentionMask::toRank4(mlir::PatternRewriter& rewriter, mlir::Location loc, Value value,
                             int64_t rank) const {
  Shape shape = *rank4Shape(tensorType(value), rank);
  if (shapeOf(value) == llvm::ArrayRef<int64_t>(shape)) return value;
  return ir::ReshapeOp::create(rewriter, loc, tensorType(value).clone(shape), value);
}

// Of rank 4, true where the term lets a key be seen.
Value AttentionMask::keptKeys(mlir::PatternRewriter& rewriter, mlir::Location loc,
                              const Hidden& term) const {
  Value value = term.choice.value;
  if (term.choice.table) {
    auto seen = seenKeys(term.choice.table, term.choice.keepsWhereTrue);
    value = ir::ConstantOp::create(rewriter, loc,
                                   mlir::DenseElementsAttr::get(term.choice.table.getType(), seen));
  } else if (!term.choice.keepsWhereTrue) {
    value = ir::NotOp::create(rewriter, loc, value);
  }
  return toRank4(rewriter, loc, value, term.rank);
}

Value AttentionMask::seeing(mlir::PatternRewriter& rewriter, mlir::Location loc) const {
  if (spread_.empty()) return {};
  Value keep;
  for (const Hidden& term : spread_) {
    Value value = keptKeys(rewriter, loc, term);
    keep = keep ? ir::AndOp::create(rewriter, loc, keep, value).getResult() : value;
  }
  mlir::Type f32 = rewriter.getF32Type();
  Value ones = ir::CastOp::create(rewriter, loc, tensorType(keep).clone(f32), keep);
  Value most = ir::ReduceMaxOp::create(rewriter, loc, ones, llvm::ArrayRef<int64_t>{3},
                                       /*keep_dims=*/true);
  return ir::GreaterOp::create(rewriter, loc, most, ir::scalarConstant(rewriter, loc, 0.0, most));
}

Value AttentionMask::make(mlir::PatternRewriter& rewriter, mlir::Location loc,
                          mlir::Type element) const {
  auto scalar = [&](double number) -> Value {
    auto attribute = rewriter.getFloatAttr(element, number);
    auto type = mlir::RankedTensorType::get({}, element);
    return ir::ConstantOp::create(rewriter, loc, mlir::DenseElementsAttr::get(type, attribute));
  };
  Value keep, sum;
  auto addToSum = [&](Value value) {
    sum = sum ? ir::AddOp::create(rewriter, loc, sum, value).getResult() : value;
  };
  for (const Hidden& term : hidden_) {
    Value value = keptKeys(rewriter, loc, term);
    keep = keep ? ir::AndOp::create(rewriter, loc, keep, value).getResult() : value;
  }
  for (const Added& term : added_) {
    Value value = toRank4(rewriter, loc, term.value, term.rank);
    if (term.factor != 1) {
      Value factor = ir::scalarConstant(rewriter, loc, term.factor, value);
      value = ir::MulOp::create(rewriter, loc, value, factor);
    }
    addToSum(value);
  }
  if (!keep || !sum) return keep ? keep : sum;
  addToSum(ir::SelectOp::create(rewriter, loc, keep, scalar(0.0), scalar(-kInfinity)));
  return sum;
}

}  // namespace oriel
