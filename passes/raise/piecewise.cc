#include "passes/raise/piecewise.h"

#include <deque>
#include <map>
#include <vector>

#include "ir/interfaces/interfaces.h"
#include "ir/interfaces/local_pieces.h"
#include "ir/interfaces/view.h"
#include "ir/interfaces/work.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Verifier.h"
#include "passes/raise/match.h"
#include "passes/raise/stacked_shape.h"

namespace oriel {

namespace {

using mlir::LogicalResult;
using mlir::Operation;
using mlir::success;
using mlir::Value;

// Series that one concatenation may rest on: more than the ops of a vision tower.
constexpr size_t kMaxSeries = 4096;

// A value for each piece.
using Pieces = llvm::SmallVector<Value>;
// The ops that compute one: equal but for their operands.
using Series = std::vector<Operation*>;

// The pieces in one value.
struct Stack {
  Value value;
  StackedShape shape;
};

bool isShared(llvm::ArrayRef<Value> pieces) { return llvm::all_equal(pieces); }

// Pieces that follow each other in one value.
struct Stretch {
  Value all;
  int64_t dim, start;
};

std::optional<Stretch> matchStretch(llvm::ArrayRef<Value> pieces) {
  auto first = pieces[0].getDefiningOp<ir::SliceOp>();
  auto second = pieces[1].getDefiningOp<ir::SliceOp>();
  if (!first || !second) return std::nullopt;
  const auto* differs = std::mismatch(first.getStarts().begin(), first.getStarts().end(),
                                      second.getStarts().begin(), second.getStarts().end())
                            .first;
  if (differs == first.getStarts().end()) return std::nullopt;
  const int64_t dim = differs - first.getStarts().begin();
  std::optional<int64_t> start = startOfStretch(first, dim);
  if (!start) return std::nullopt;
  int64_t end = *start;
  for (Value piece : pieces) {
    auto slice = piece.getDefiningOp<ir::SliceOp>();
    if (!slice || slice.getInput() != first.getInput() || slice.getType() != first.getType() ||
        startOfStretch(slice, dim) != end) {
      return std::nullopt;
    }
    end += slice.getType().getDimSize(dim);
  }
  return Stretch{first.getInput(), dim, *start};
}

bool areConstants(llvm::ArrayRef<Value> pieces) {
  return llvm::all_of(pieces, [](Value piece) { return piece.getDefiningOp<ir::ConstantOp>(); });
}

// Nothing if the pieces are not computed by equal ops of one block.
std::optional<Series> matchSeries(llvm::ArrayRef<Value> pieces) {
  auto first = llvm::dyn_cast<mlir::OpResult>(pieces.front());
  if (!first) return std::nullopt;
  Operation* of = first.getOwner();
  if (!mlir::isMemoryEffectFree(of) || of->getNumRegions() != 0 || of->getNumOperands() == 0) {
    return std::nullopt;
  }
  Series series;
  llvm::SmallPtrSet<Operation*, 8> seen;
  for (Value piece : pieces) {
    auto result = llvm::dyn_cast<mlir::OpResult>(piece);
    if (!result || result.getResultNumber() != first.getResultNumber()) return std::nullopt;
    Operation* op = result.getOwner();
    if (op->getName() != of->getName() || op->getBlock() != of->getBlock() ||
        op->getAttrDictionary() != of->getAttrDictionary() ||
        op->getOperandTypes() != of->getOperandTypes() ||
        op->getResultTypes() != of->getResultTypes() || !seen.insert(op).second) {
      return std::nullopt;
    }
    series.push_back(op);
  }
  return series;
}

Pieces operandsOf(const Series& series, unsigned index) {
  Pieces pieces;
  for (Operation* op : series) pieces.push_back(op->getOperand(index));
  return pieces;
}

bool isReshaped(Operation* op) {
  return ir::isView(op) && op->getNumOperands() == 1 && op->getNumResults() == 1 &&
         mlir::getElementTypeOrSelf(op->getOperand(0)) ==
             mlir::getElementTypeOrSelf(op->getResult(0));
}

// Where a factor, outermost in its dimension, is in a tensor.
std::optional<int64_t> dimOf(const ir::TensorFactors& dims, int factor) {
  for (auto [dim, factors] : llvm::enumerate(dims)) {
    if (!factors.empty() && factors.front() == factor) return dim;
  }
  return std::nullopt;
}

bool contains(const ir::TensorFactors& dims, int factor) {
  return llvm::any_of(
      dims, [&](const ir::FactorList& factors) { return llvm::is_contained(factors, factor); });
}

// One run of a concatenation's operands, computed at once.
class AtOnce {
 public:
  AtOnce(llvm::ArrayRef<Value> pieces, mlir::RewriterBase& rewriter)
      : pieces_(pieces), count_(static_cast<int64_t>(pieces.size())), rewriter_(rewriter) {}

  // The pieces, concatenated along a dimension, before `user`; null if they are not computed
  // alike. The IR has nothing more then.
  Value build(int64_t dim, Operation* user) {
    if (!findSeries()) return nullptr;
    for (auto& [series, results] : series_) ordered_.push_back(&series);
    llvm::sort(ordered_, [](const Series* one, const Series* other) {
      return one->front()->isBeforeInBlock(other->front());
    });
    bool areBuilt = llvm::all_of(ordered_, [&](const Series* series) { return build(*series); });
    Value all;
    if (areBuilt) {
      rewriter_.setInsertionPoint(user);
      all = present(stackOf(pieces_), {dim, 1}, user->getLoc());
      // Else it would be as many launches, where these are all that it costs.
      if (!multiplies_ && transposes_ >= computing_ * (count_ - 1)) all = nullptr;
    }
    if (!all) {
      for (Operation* op : llvm::reverse(made_)) rewriter_.eraseOp(op);
    }
    return all;
  }

  // Erases what was computed piece by piece, once the concatenation is gone, but for what is
  // `erased` already.
  void erasePieces(llvm::DenseSet<Operation*>& erased) {
    for (const Series* series : llvm::reverse(ordered_)) {
      for (auto [index, op] : llvm::enumerate(*series)) {
        if (!erased.insert(op).second) continue;
        for (mlir::OpResult result : op->getResults()) {
          if (result.use_empty()) continue;
          const Stack& stack = *series_[*series][result.getResultNumber()];
          rewriter_.setInsertionPointAfterValue(stack.value);
          rewriter_.replaceAllUsesWith(result, pieceOf(stack, index));
        }
        rewriter_.eraseOp(op);
      }
    }
  }

 private:
  // Whether all that the pieces are computed by are series, down to stretches, constants and what
  // is shared.
  bool findSeries() {
    llvm::SmallVector<Pieces> open = {pieces_};
    while (!open.empty()) {
      const Pieces pieces = open.pop_back_val();
      if (isShared(pieces) || matchStretch(pieces) || areConstants(pieces)) continue;
      std::optional<Series> series = matchSeries(pieces);
      if (!series || series_.size() == kMaxSeries) return false;
      if (!series_.try_emplace(*series).second) continue;
      if (!isReshaped(series->front())) ++computing_;
      multiplies_ |= ir::workFlops(series->front()) > 0;
      for (unsigned i = 0; i < series->front()->getNumOperands(); ++i) {
        open.push_back(operandsOf(*series, i));
      }
    }
    return computing_ > 0;
  }

  bool build(const Series& series) {
    Operation* first = series.front();
    for (Operation* op : series) {
      if (op->isBeforeInBlock(first)) first = op;
    }
    // What all pieces need is there before the first one, whichever it is.
    rewriter_.setInsertionPoint(first);
    llvm::SmallVector<std::optional<Stack>>& results = series_[series];
    if (isReshaped(series.front())) {
      Stack stack = stackOf(operandsOf(series, 0));
      if (!stack.value) return false;
      stack.shape.piece.assign(tensorType(series.front()->getResult(0)).getShape());
      results = {stack};
      return true;
    }
    if (auto transpose = llvm::dyn_cast<ir::TransposeOp>(series.front())) {
      // Moves the index of the piece on its way.
      Stack stack = stackOf(operandsOf(series, 0));
      if (!stack.value) return false;
      if (std::optional<Restacking> way =
              transposeStacked(stack.shape, transpose.getPermutation())) {
        stack.value = moved(stack.value, *way, transpose.getLoc());
        results = {stack};
        return true;
      }
    }
    return buildByRule(series, results);
  }

  // A way to compute a series by one op, along a parallel factor.
  struct Way {
    int factor;
    bool isInner;       // the piece's index is inside of the factor
    int64_t moved = 0;  // elements, by transposes
  };

  bool buildByRule(const Series& series, llvm::SmallVector<std::optional<Stack>>& results) {
    Operation* piece = series.front();
    auto shardable = llvm::dyn_cast<ir::ShardableOpInterface>(piece);
    if (!shardable) return false;
    const ir::ShardingRule rule = shardable.getShardingRule();
    llvm::SmallVector<std::optional<Stack>> operands(piece->getNumOperands());
    for (unsigned i = 0; i < operands.size(); ++i) {
      Pieces ofOperand = operandsOf(series, i);
      if (isShared(ofOperand)) continue;
      operands[i] = stackOf(ofOperand);
      if (!operands[i]->value) return false;
    }
    for (const Way& way : waysOf(rule, operands)) {
      if (!givesAllUsed(series, rule, way.factor)) continue;
      if (Operation* op = buildBy(way, rule, piece, operands)) {
        results.resize(piece->getNumResults());
        for (auto [i, result] : llvm::enumerate(piece->getResults())) {
          std::optional<int64_t> dim = dimOf(rule.results[i], way.factor);
          if (!dim) continue;
          StackedShape shape{Shape(tensorType(result).getShape()), count_, 1};
          shape.outer = shape.outerAt(placeOf(way, rule, *dim));
          results[i] = Stack{op->getResult(i), std::move(shape)};
        }
        return true;
      }
    }
    return false;
  }

  static StackingPlace placeOf(const Way& way, const ir::ShardingRule& rule, int64_t dim) {
    return {dim, way.isInner ? rule.factors[way.factor].size : 1};
  }

  // The cheapest first; of equal ones those that make a dimension of size 1 one of pieces, and then
  // those that leave the factor outermost, by which ranks share.
  llvm::SmallVector<Way> waysOf(const ir::ShardingRule& rule,
                                llvm::ArrayRef<std::optional<Stack>> operands) const {
    llvm::SmallVector<Way> ways;
    for (auto [factor, of] : llvm::enumerate(rule.factors)) {
      if (of.kind != ir::FactorKind::kParallel) continue;
      for (bool isInner : {true, false}) {
        if (isInner && of.size == 1) continue;
        Way way{static_cast<int>(factor), isInner};
        if (isPossible(way, rule, operands)) ways.push_back(way);
      }
    }
    auto cost = [&](const Way& way) {
      return std::pair(way.moved, rule.factors[way.factor].size != 1);
    };
    llvm::stable_sort(ways,
                      [&](const Way& one, const Way& other) { return cost(one) < cost(other); });
    return ways;
  }

  // Whether the results that something uses have the factor.
  static bool givesAllUsed(const Series& series, const ir::ShardingRule& rule, int factor) {
    return llvm::all_of(llvm::enumerate(rule.results), [&](auto entry) {
      return dimOf(entry.value(), factor) || llvm::all_of(series, [&](Operation* op) {
               return op->getResult(entry.index()).use_empty();
             });
    });
  }

  bool isPossible(Way& way, const ir::ShardingRule& rule,
                  llvm::ArrayRef<std::optional<Stack>> operands) const {
    for (auto [dims, stack] : llvm::zip_equal(rule.operands, operands)) {
      std::optional<int64_t> dim = dimOf(dims, way.factor);
      if (!stack && (dim || !contains(dims, way.factor))) continue;
      if (!stack || !dim) return false;
      std::optional<Restacking> moved = restack(stack->shape, placeOf(way, rule, *dim));
      if (!moved) return false;
      if (!moved->split.empty()) way.moved += tensorType(stack->value).getNumElements();
    }
    return true;
  }

  Operation* buildBy(const Way& way, const ir::ShardingRule& rule, Operation* piece,
                     llvm::ArrayRef<std::optional<Stack>> operands) {
    const size_t before = made_.size();
    // What all share may broadcast where it has size 1; else it is repeated.
    for (bool repeats : {false, true}) {
      if (repeats && llvm::none_of(llvm::zip_equal(rule.operands, operands), [&](auto entry) {
            return !std::get<1>(entry) && dimOf(std::get<0>(entry), way.factor);
          })) {
        break;
      }
      llvm::SmallVector<Value> values;
      for (auto [i, stack] : llvm::enumerate(operands)) {
        Value value = piece->getOperand(i);
        std::optional<int64_t> dim = dimOf(rule.operands[i], way.factor);
        if (stack) value = present(*stack, placeOf(way, rule, *dim), piece->getLoc());
        if (!stack && dim && repeats) {
          value = repeat(value, placeOf(way, rule, *dim), piece->getLoc());
        }
        values.push_back(value);
      }
      Operation* op = widened(way, rule, piece, values);
      if (op && isCutInto(op, way, rule, piece, operands)) return op;
      while (made_.size() > before) rewriter_.eraseOp(made_.pop_back_val());
    }
    return nullptr;
  }

  // The op with `count_` times as much along the factor.
  Operation* widened(const Way& way, const ir::ShardingRule& rule, Operation* piece,
                     mlir::ValueRange operands) {
    mlir::OperationState state(piece->getLoc(), piece->getName(), operands, {}, piece->getAttrs());
    for (auto [type, dims] : llvm::zip_equal(piece->getResultTypes(), rule.results)) {
      auto tensor = llvm::cast<mlir::RankedTensorType>(type);
      Shape shape(tensor.getShape());
      if (std::optional<int64_t> dim = dimOf(dims, way.factor)) shape[*dim] *= count_;
      state.addTypes(tensor.clone(shape));
    }
    if (auto slice = llvm::dyn_cast<ir::SliceOp>(piece)) {
      Shape limits(slice.getLimits());
      limits[*dimOf(rule.operands[0], way.factor)] *= count_;
      state.attributes.set(slice.getLimitsAttrName(), rewriter_.getDenseI64ArrayAttr(limits));
    }
    Operation* op = made(rewriter_.create(state));
    mlir::ScopedDiagnosticHandler silent(op->getContext(), [](mlir::Diagnostic&) {});
    return succeeded(mlir::verify(op)) ? op : nullptr;
  }

  // Whether the op, cut along the factor into as many pieces, is the piece.
  bool isCutInto(Operation* op, const Way& way, const ir::ShardingRule& pieceRule, Operation* piece,
                 llvm::ArrayRef<std::optional<Stack>> operands) {
    auto shardable = llvm::cast<ir::ShardableOpInterface>(op);
    const ir::ShardingRule rule = shardable.getShardingRule();
    std::optional<int> factor;
    for (auto [dims, ofPiece] : llvm::zip_equal(rule.results, pieceRule.results)) {
      std::optional<int64_t> dim = dimOf(ofPiece, way.factor);
      if (!dim) continue;
      if (dims[*dim].empty() || factor.value_or(dims[*dim].front()) != dims[*dim].front()) {
        return false;
      }
      factor = dims[*dim].front();
    }
    if (!factor || rule.factors[*factor].kind != ir::FactorKind::kParallel ||
        rule.factors[*factor].size != pieceRule.factors[way.factor].size * count_) {
      return false;
    }
    for (auto [i, stack] : llvm::enumerate(operands)) {
      const bool isWhole = op->getOperand(i) == piece->getOperand(i);
      if (isWhole == contains(rule.operands[i], *factor)) return false;
      if (!isWhole &&
          dimOf(rule.operands[i], *factor) != dimOf(pieceRule.operands[i], way.factor)) {
        return false;
      }
    }
    llvm::SmallVector<int64_t> counts(rule.factors.size(), 1);
    counts[*factor] = count_;
    bool dependsOnPlace = false;
    ir::LocalPieces pieces(counts, [&](mlir::OpBuilder&, mlir::Location, int) {
      dependsOnPlace = true;
      return piece->getOperand(0);
    });
    mlir::OpBuilder builder(piece);
    Operation* local = shardable.buildLocal(builder, piece->getOperands(), pieces);
    const bool isPiece =
        !dependsOnPlace && mlir::OperationEquivalence::isEquivalentTo(
                               local, piece, mlir::OperationEquivalence::IgnoreLocations);
    rewriter_.eraseOp(local);
    return isPiece;
  }

  // Without a value where they are shared, or an op does not give this result piece by piece.
  Stack stackOf(llvm::ArrayRef<Value> pieces) {
    StackedShape shape{Shape(tensorType(pieces.front()).getShape()), count_, 1};
    if (isShared(pieces)) return {Value(), shape};
    if (std::optional<Stretch> stretch = matchStretch(pieces)) {
      const int64_t size = shape.piece[stretch->dim] * count_;
      Value all = stretch->all;
      if (tensorType(all).getDimSize(stretch->dim) != size) {
        all = made(stretchOf(all, stretch->dim, stretch->start, size));
      }
      shape.outer = shape.outerAt({stretch->dim, 1});
      return {all, shape};
    }
    if (areConstants(pieces)) return {stackedConstants(pieces), shape};
    const std::optional<Stack>& stack =
        series_[*matchSeries(pieces)][llvm::cast<mlir::OpResult>(pieces[0]).getResultNumber()];
    return stack ? *stack : Stack{Value(), shape};
  }

  // [count, piece..]
  Value stackedConstants(llvm::ArrayRef<Value> pieces) {
    mlir::RankedTensorType type = tensorType(pieces.front());
    Shape shape(type.getShape());
    shape.insert(shape.begin(), 1);
    llvm::SmallVector<Value> rows;
    for (Value piece : pieces) {
      Operation* constant = made(rewriter_.clone(*piece.getDefiningOp()));
      rows.push_back(reshaped(constant->getResult(0), shape, piece.getLoc()));
    }
    return made(ir::ConcatOp::create(rewriter_, pieces.front().getLoc(), rows, 0).getResult());
  }

  Value present(const Stack& stack, StackingPlace place, mlir::Location loc) {
    if (!stack.value) return nullptr;
    std::optional<Restacking> way = restack(stack.shape, place);
    if (!way) return nullptr;
    if (!way->split.empty()) ++transposes_;
    return moved(stack.value, *way, loc);
  }

  Value moved(Value value, const Restacking& way, mlir::Location loc) {
    if (!way.split.empty()) {
      value = reshaped(value, way.split, loc);
      value = made(ir::TransposeOp::create(rewriter_, loc, value, way.permutation).getResult());
    }
    return reshaped(value, way.shape, loc);
  }

  // A tensor that all share, once for each piece.
  Value repeat(Value value, StackingPlace place, mlir::Location loc) {
    Shape shape(tensorType(value).getShape());
    Shape whole = StackedShape{shape, count_, 1}.at(place);
    shape[place.dim] /= place.within;
    shape.insert(shape.begin() + place.dim, {place.within, 1});
    Value split = reshaped(value, shape, loc);
    shape[place.dim + 1] = count_;
    Value repeated = made(
        ir::BroadcastOp::create(rewriter_, loc, tensorType(value).clone(shape), split).getResult());
    return reshaped(repeated, whole, loc);
  }

  Value pieceOf(const Stack& stack, int64_t index) {
    const mlir::Location loc = stack.value.getLoc();
    const Shape& piece = stack.shape.piece;
    for (auto [dim, size] : llvm::enumerate(piece)) {
      const StackingPlace place{static_cast<int64_t>(dim), 1};
      if (stack.shape.outerAt(place) != stack.shape.outer) continue;
      Value value = reshaped(stack.value, stack.shape.at(place), loc);
      return stretchOf(value, place.dim, index * size, size);
    }
    const int64_t elements = tensorType(stack.value).getNumElements();
    Shape shape = {stack.shape.outer, count_, elements / count_ / stack.shape.outer};
    return reshaped(stretchOf(reshaped(stack.value, shape, loc), 1, index, 1), piece, loc);
  }

  // Not folded: what is made may have to be erased.
  Value stretchOf(Value value, int64_t dim, int64_t start, int64_t size) {
    Shape limits(tensorType(value).getShape());
    Shape starts(limits.size(), 0), strides(limits.size(), 1);
    starts[dim] = start;
    limits[dim] = start + size;
    return ir::SliceOp::create(rewriter_, value.getLoc(), value, starts, limits, strides);
  }

  Value reshaped(Value value, llvm::ArrayRef<int64_t> shape, mlir::Location loc) {
    mlir::RankedTensorType type = tensorType(value).clone(shape);
    if (type == value.getType()) return value;
    return made(ir::ReshapeOp::create(rewriter_, loc, type, value).getResult());
  }

  Operation* made(Operation* op) {
    made_.push_back(op);
    return op;
  }
  Value made(Value value) {
    made(value.getDefiningOp());
    return value;
  }

  Pieces pieces_;
  int64_t count_;
  mlir::RewriterBase& rewriter_;
  // With what stands for each result; nothing where it is not stacked.
  std::map<Series, llvm::SmallVector<std::optional<Stack>>> series_;
  llvm::SmallVector<const Series*> ordered_;
  int64_t computing_ = 0;               // series that are no reshapes
  bool multiplies_ = false;             // one of them: a product, attention
  int64_t transposes_ = 0;              // that bring stacks to another place
  llvm::SmallVector<Operation*> made_;  // to be erased on failure, the last first
};

}  // namespace

LogicalResult computeAtOnce(ir::ConcatOp concat, mlir::RewriterBase& rewriter) {
  const auto dim = static_cast<int64_t>(concat.getDim());
  if (concat.getType().getNumElements() == 0) return mlir::failure();
  const Pieces inputs(concat.getInputs());
  llvm::SmallVector<Value> results;
  std::deque<AtOnce> runs;
  for (size_t begin = 0, end = 0; begin < inputs.size(); begin = end) {
    while (end < inputs.size() && inputs[end].getType() == inputs[begin].getType()) ++end;
    auto run = llvm::ArrayRef(inputs).slice(begin, end - begin);
    if (run.size() > 1) {
      if (Value all = runs.emplace_back(run, rewriter).build(dim, concat)) {
        results.push_back(all);
        continue;
      }
      runs.pop_back();
    }
    results.append(run.begin(), run.end());
  }
  if (runs.empty()) return mlir::failure();
  if (results.size() == 1) {
    rewriter.replaceOp(concat, results.front());
  } else {
    rewriter.setInsertionPoint(concat);
    rewriter.replaceOpWithNewOp<ir::ConcatOp>(concat, results, dim);
  }
  llvm::DenseSet<Operation*> erased;
  for (AtOnce& run : llvm::reverse(runs)) run.erasePieces(erased);
  return success();
}

}  // namespace oriel
