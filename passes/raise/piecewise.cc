#include "passes/raise/piecewise.h"

#include <deque>
#include <limits>
#include <map>

#include "ir/interfaces/view.h"
#include "ir/interfaces/work.h"
#include "passes/raise/match.h"
#include "passes/raise/widened_op.h"

namespace oriel {

namespace {

using mlir::LogicalResult;
using mlir::Operation;
using mlir::Value;

// The stacks of a series' results; nothing where one has none.
using Stacks = llvm::SmallVector<std::optional<Stack>>;

// A run of a concatenation's operands, computed at once.
class Run {
 public:
  Run(Pieces pieces, SeriesTree tree, StackBuilder& builder)
      : pieces_(std::move(pieces)), tree_(std::move(tree)), builder_(builder) {
    for (const Series& series : tree_.series) ops_.insert(series.begin(), series.end());
  }

  // The pieces, concatenated along a dimension, before `concat`. Null, with nothing left in the IR,
  // where some op can't be computed so, or that takes as many launches.
  Value build(int64_t dim, Operation* concat) {
    const size_t begin = builder_.made().size();
    Value all;
    if (llvm::all_of(tree_.series, [&](const Series& series) { return stack(series); })) {
      builder_.rewriter().setInsertionPoint(concat);
      std::optional<Stack> result = stackOf(pieces_);
      if (result && restack(result->shape, {dim, 1})) all = builder_.present(*result, {dim, 1});
    }
    if (all && launchesMade(begin, concat) < launchesSaved(concat)) return all;
    builder_.undo(begin);
    return nullptr;
  }

  const llvm::DenseSet<Operation*>& ops() const { return ops_; }

  // What the op, one of ops(), gave, as a slice of what has been built.
  Value pieceOf(mlir::OpResult result) {
    for (const Series& series : tree_.series) {
      auto at = llvm::find(series, result.getOwner());
      if (at == series.end()) continue;
      const unsigned number = result.getResultNumber();
      const Stack& stack = *stacks_.at(&series)[number];
      builder_.rewriter().setInsertionPointAfterValue(stack.value);
      auto [whole, isNew] = wholes_.try_emplace({&series, number});
      if (isNew) whole->second = wholeOf(stack);
      builder_.rewriter().setInsertionPointAfterValue(whole->second.value);
      const auto [value, dim] = whole->second;
      const int64_t size = tensorType(value).getDimSize(dim) / count();
      Value piece = builder_.stretchOf(value, dim, (at - series.begin()) * size, size);
      return builder_.reshape(piece, stack.shape.piece);
    }
    llvm_unreachable("the op is of no series");
  }

 private:
  int64_t count() const { return static_cast<int64_t>(pieces_.size()); }

  // Makes stacks of what the series computes.
  bool stack(const Series& series) {
    Operation* piece = series.front();
    // What all pieces need is there before the first one, whichever it is.
    builder_.rewriter().setInsertionPoint(*llvm::min_element(
        series, [](Operation* one, Operation* other) { return one->isBeforeInBlock(other); }));
    llvm::SmallVector<std::optional<Stack>> operands;
    for (unsigned i = 0; i < piece->getNumOperands(); ++i) {
      operands.push_back(stackOf(operandsOf(series, i)));
    }
    if (auto reshape = llvm::dyn_cast<ir::ReshapeOp>(piece)) {
      operands[0]->shape.piece.assign(reshape.getType().getShape());
      stacks_[&series] = {operands[0]};
      return true;
    }
    if (auto transpose = llvm::dyn_cast<ir::TransposeOp>(piece)) {
      if (auto stack = builder_.transpose(*operands[0], transpose.getPermutation())) {
        stacks_[&series] = {stack};
        return true;
      }
    }
    auto isUsed = [&](unsigned result) {
      return llvm::any_of(series,
                          [&](Operation* op) { return !op->getResult(result).use_empty(); });
    };
    std::optional<Stacks> results = widen(builder_, piece, count(), operands, isUsed);
    if (!results) return false;
    stacks_[&series] = std::move(*results);
    return true;
  }

  // Nothing where they are shared.
  std::optional<Stack> stackOf(const Pieces& pieces) {
    if (isShared(pieces)) return std::nullopt;
    StackedShape shape{Shape(shapeOf(pieces.front())), count(), 1};
    if (std::optional<Stretch> stretch = matchStretch(pieces)) {
      const int64_t size = shape.piece[stretch->dim] * count();
      shape.outer = shape.outerAt({stretch->dim, 1});
      return Stack{builder_.stretchOf(stretch->all, stretch->dim, stretch->start, size), shape};
    }
    if (areConstants(pieces)) return Stack{builder_.stackConstants(pieces), shape};
    const Series& series = *llvm::find(tree_.series, *matchSeries(pieces));
    return stacks_.at(&series)[llvm::cast<mlir::OpResult>(pieces.front()).getResultNumber()];
  }

  // A value of which the pieces are stretches along a dimension.
  struct Whole {
    Value value;
    int64_t dim;
  };
  Whole wholeOf(const Stack& stack) {
    for (int64_t dim = 0; dim < static_cast<int64_t>(stack.shape.piece.size()); ++dim) {
      if (stack.shape.outerAt({dim, 1}) == stack.shape.outer) {
        return {builder_.present(stack, {dim, 1}), dim};
      }
    }
    const int64_t elements = tensorType(stack.value).getNumElements();
    return {builder_.reshape(stack.value,
                             {stack.shape.outer, count(), elements / count() / stack.shape.outer}),
            1};
  }

  static bool launches(Operation* op) {
    return !ir::isView(op) && !op->hasTrait<mlir::OpTrait::ConstantLike>();
  }

  // By more than the run and, as one of its pieces, the concatenation.
  bool isReadElsewhere(Value value, Operation* concat) const {
    const bool isPiece = llvm::is_contained(pieces_, value);
    return llvm::any_of(value.getUsers(), [&](Operation* user) {
      return !ops_.contains(user) && !(isPiece && user == concat);
    });
  }

  int64_t launchesMade(size_t begin, Operation* concat) const {
    int64_t made = 0;
    for (Operation* op : builder_.made().drop_front(begin)) {
      // Constants are folded.
      const bool isFolded = llvm::isa<ir::ConcatOp>(op) && llvm::all_of(op->getOperands(), isFixed);
      made += launches(op) && !isFolded;
    }
    for (Operation* op : ops_) {
      for (mlir::OpResult result : op->getResults()) made += isReadElsewhere(result, concat);
    }
    return made;
  }

  static bool isFixed(Value value) {
    auto reshape = value.getDefiningOp<ir::ReshapeOp>();
    return (reshape ? Value(reshape.getInput()) : value).getDefiningOp<ir::ConstantOp>() != nullptr;
  }

  int64_t launchesSaved(Operation* concat) const {
    // Products are worth the transposes.
    for (const Series& series : tree_.series) {
      if (ir::workFlops(series.front()) > 0) return std::numeric_limits<int64_t>::max();
    }
    int64_t saved = concat->getNumOperands() == pieces_.size() ? 1 : 0;
    for (Operation* op : ops_) saved += launches(op);
    llvm::DenseSet<Value> slices;
    for (const Pieces& stretch : tree_.stretches) slices.insert(stretch.begin(), stretch.end());
    for (Value slice : slices) saved += !isReadElsewhere(slice, concat);
    return saved;
  }

  Pieces pieces_;
  SeriesTree tree_;
  StackBuilder& builder_;
  llvm::DenseSet<Operation*> ops_;
  std::map<const Series*, Stacks> stacks_;
  std::map<std::pair<const Series*, unsigned>, Whole> wholes_;
};

// Runs of values in which each is computed as the one before it, by `search`.
std::vector<Pieces> runsOf(mlir::ValueRange values, SeriesSearch& search) {
  std::vector<Pieces> runs;
  for (Value value : values) {
    const bool goesOn = !runs.empty() && runs.back().back() != value &&
                        runs.back().back().getType() == value.getType() &&
                        search.find({runs.back().back(), value});
    if (!goesOn) runs.emplace_back();
    runs.back().push_back(value);
  }
  return runs;
}

}  // namespace

LogicalResult Piecewise::computeAtOnce(ir::ConcatOp concat) {
  if (concat.getType().getNumElements() == 0) return mlir::failure();
  const auto dim = static_cast<int64_t>(concat.getDim());
  llvm::SmallVector<Value> results;
  std::deque<Run> built;
  for (const Pieces& pieces : runsOf(concat.getInputs(), search_)) {
    std::optional<SeriesTree> tree;
    if (pieces.size() > 1 && !areConstants(pieces)) tree = search_.find(pieces);
    if (tree) {
      if (Value all = built.emplace_back(pieces, std::move(*tree), builder_).build(dim, concat)) {
        results.push_back(all);
        continue;
      }
      built.pop_back();
      search_.exclude(pieces);
    }
    results.append(pieces.begin(), pieces.end());
  }
  if (built.empty()) return mlir::failure();
  mlir::RewriterBase& rewriter = builder_.rewriter();
  Value result = results.front();
  if (results.size() > 1) {
    rewriter.setInsertionPoint(concat);
    result = ir::ConcatOp::create(rewriter, concat.getLoc(), results, dim);
  }
  rewriter.replaceAllUsesWith(concat.getResult(), result);
  take(concat);
  // From the last op to the first: slices of what one gives may be of what an earlier one gave.
  std::vector<std::pair<Operation*, Run*>> ops;
  llvm::DenseSet<Operation*> seen;
  for (Run& run : built) {
    for (Operation* op : run.ops()) {
      if (seen.insert(op).second) ops.emplace_back(op, &run);
    }
  }
  llvm::sort(ops, [](auto& one, auto& other) { return other.first->isBeforeInBlock(one.first); });
  for (auto [op, run] : ops) {
    for (mlir::OpResult value : op->getResults()) {
      if (!value.use_empty()) rewriter.replaceAllUsesWith(value, run->pieceOf(value));
    }
    take(op);
  }
  return mlir::success();
}

void Piecewise::take(Operation* op) {
  op->dropAllReferences();
  op->remove();
  taken_.push_back(op);
}

Piecewise::~Piecewise() {
  for (Operation* op : taken_) op->erase();
}

}  // namespace oriel
