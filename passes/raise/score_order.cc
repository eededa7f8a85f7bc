#include "passes/raise/score_order.h"

#include "ir/oriel/matmul_dims.h"
#include "passes/raise/match.h"

namespace oriel {
namespace {

using mlir::LogicalResult;
using mlir::PatternRewriter;
using mlir::success;
using mlir::Value;
using Permutation = llvm::SmallVector<int64_t>;

// The product of two dimensions of rows with matrices that these share.
ir::MatmulOp matchTwoRows(Value value) {
  auto op = value.getDefiningOp<ir::MatmulOp>();
  const bool isIt = op && op.getRowDims() == 2 && op.getSumDims() == 1 && op.getColumnDims() == 1 &&
                    !op.getTransposeLhs();
  return isIt ? op : ir::MatmulOp();
}

// Exchanges the two dimensions in front of the last one.
Permutation rowSwap(int64_t rank) {
  Permutation permutation = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  std::swap(permutation[rank - 3], permutation[rank - 2]);
  return permutation;
}

bool undoes(llvm::ArrayRef<int64_t> second, llvm::ArrayRef<int64_t> first) {
  for (auto [d, from] : llvm::enumerate(second)) {
    if (first[from] != static_cast<int64_t>(d)) return false;
  }
  return true;
}

bool isElementwise(mlir::Operation* op) {
  return llvm::isa_and_nonnull<ir::AddOp, ir::DivOp, ir::MulOp, ir::SelectOp, ir::SubOp,
                               ir::TanhOp>(op);
}

// A way from scores up to where they may be transposed: ops on elements that nothing else reads.
class ScoreChain {
 public:
  // Where the permutation would be undone: a transpose, or a product whose rows it exchanges.
  static bool leadsToUndoing(Value scores, llvm::ArrayRef<int64_t> permutation) {
    return find(scores, [&](Value end) {
      if (auto transpose = end.getDefiningOp<ir::TransposeOp>()) {
        return undoes(permutation, transpose.getPermutation());
      }
      return matchTwoRows(end) && llvm::ArrayRef(rowSwap(permutation.size())) == permutation;
    });
  }
  static bool leadsToTwoRows(Value scores) {
    return find(scores, [](Value end) { return matchTwoRows(end) != ir::MatmulOp(); });
  }

  // The scores, transposed where they begin.
  static Value transposed(PatternRewriter& rewriter, Value scores,
                          llvm::ArrayRef<int64_t> permutation) {
    mlir::Operation* op = scores.getDefiningOp();
    if (auto transpose = llvm::dyn_cast_or_null<ir::TransposeOp>(op)) {
      if (undoes(permutation, transpose.getPermutation())) return transpose.getInput();
    }
    if (!isElementwise(op)) {
      return ir::TransposeOp::create(rewriter, scores.getLoc(), scores, permutation);
    }
    const size_t main = *mainOperand(op);
    llvm::SmallVector<Value> operands;
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      operands.push_back(i == main ? transposed(rewriter, operand, permutation)
                                   : repeated(rewriter, operand, permutation));
    }
    mlir::Operation* moved = rewriter.clone(*op);
    moved->setOperands(operands);
    moved->getResult(0).setType(operands[main].getType());
    return moved->getResult(0);
  }

  // Of two dimensions of rows, whether what is done to the scores says that queries come first:
  // what is the same for all of a group's queries is so in the last one. Else the one with more
  // rows is that of queries.
  static bool hasQueriesFirst(Value scores) {
    bool first = false, last = false;
    for (Value value = scores; isElementwise(value.getDefiningOp());) {
      mlir::Operation* op = value.getDefiningOp();
      const size_t main = *mainOperand(op);
      for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
        llvm::ArrayRef<int64_t> shape = shapeOf(operand);
        if (i == main || shape.size() < 2) continue;
        const bool hasLast = shape[shape.size() - 2] != 1;
        const bool hasFirst = shape.size() > 2 && shape[shape.size() - 3] != 1;
        first = first || (hasFirst && !hasLast);
        last = last || (hasLast && !hasFirst);
      }
      value = op->getOperand(main);
    }
    llvm::ArrayRef<int64_t> shape = shapeOf(scores);
    const bool moreFirst = shape[shape.size() - 3] > shape[shape.size() - 2];
    return !last && (first || moreFirst);
  }

 private:
  static constexpr int kLongest = 12;

  // The operand that the scores come from: one of their type that is no constant.
  static std::optional<size_t> mainOperand(mlir::Operation* op) {
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      if (operand.getType() == op->getResult(0).getType() && operand.getDefiningOp() &&
          !operand.getDefiningOp<ir::ConstantOp>() && leads(operand, kLongest)) {
        return i;
      }
    }
    return std::nullopt;
  }

  static bool isEnd(Value value) {
    return value.getDefiningOp<ir::TransposeOp>() || matchTwoRows(value);
  }
  static bool leads(Value value, int depth) {
    if (isEnd(value)) return true;
    if (depth == 0 || !isElementwise(value.getDefiningOp()) || !value.hasOneUse()) return false;
    return llvm::any_of(value.getDefiningOp()->getOperands(), [&](Value operand) {
      return operand.getType() == value.getType() && leads(operand, depth - 1);
    });
  }

  static bool find(Value scores, llvm::function_ref<bool(Value)> isWanted) {
    for (int step = 0; step < kLongest; ++step) {
      if (isEnd(scores)) return isWanted(scores);
      mlir::Operation* op = scores.getDefiningOp();
      if (!isElementwise(op) || !scores.hasOneUse()) return false;
      std::optional<size_t> main = mainOperand(op);
      if (!main) return false;
      scores = op->getOperand(*main);
    }
    return false;
  }

  // What is repeated over scores; its dimensions of size 1 move without a copy.
  static Value repeated(PatternRewriter& rewriter, Value value,
                        llvm::ArrayRef<int64_t> permutation) {
    mlir::RankedTensorType type = tensorType(value);
    if (type.getNumElements() == 1) return value;
    mlir::Location loc = value.getLoc();
    value = expandRank(rewriter, loc, value, permutation.size());
    llvm::ArrayRef<int64_t> from = shapeOf(value);
    llvm::SmallVector<int64_t> to, others;
    for (int64_t d : permutation) {
      to.push_back(from[d]);
      if (from[d] != 1) others.push_back(d);
    }
    if (llvm::is_sorted(others)) {
      return ir::ReshapeOp::create(rewriter, loc, type.clone(to), value);
    }
    return ir::TransposeOp::create(rewriter, loc, value, permutation);
  }
};

// Whether the value is probabilities, perhaps transposed: the other product of an attention.
bool isOfSoftmax(Value value) {
  if (auto transpose = value.getDefiningOp<ir::TransposeOp>()) value = transpose.getInput();
  return value.getDefiningOp<ir::SoftmaxOp>() != nullptr;
}

// transpose(product) of two dimensions of rows that are exchanged → product(transpose(rows)).
struct RowsBeforeProduct : mlir::OpRewritePattern<ir::TransposeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::TransposeOp op, PatternRewriter& rewriter) const override {
    ir::MatmulOp product = matchTwoRows(op.getInput());
    if (!product || !product->hasOneUse() || isOfSoftmax(product.getLhs()) ||
        op.getPermutation() != llvm::ArrayRef(rowSwap(op.getType().getRank()))) {
      return rewriter.notifyMatchFailure(op, "rows of a product are not exchanged");
    }
    Value rows =
        ir::TransposeOp::create(rewriter, op.getLoc(), product.getLhs(), op.getPermutation());
    rewriter.replaceOpWithNewOp<ir::MatmulOp>(op, rows, product.getRhs(), /*transpose_lhs=*/false,
                                              product.getTransposeRhs(), /*row_dims=*/2,
                                              /*sum_dims=*/1, /*column_dims=*/1);
    return success();
  }
};

// transpose(softmax(f(transpose(x)))) → softmax(f(x)), where the two cancel.
struct SoftmaxBetweenTransposes : mlir::OpRewritePattern<ir::SoftmaxOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::SoftmaxOp op, PatternRewriter& rewriter) const override {
    const int64_t last = op.getType().getRank() - 1;
    auto first =
        op->use_empty() ? ir::TransposeOp() : llvm::dyn_cast<ir::TransposeOp>(*op->user_begin());
    auto isAlike = [&](mlir::Operation* user) {
      auto transpose = llvm::dyn_cast<ir::TransposeOp>(user);
      return transpose && transpose.getPermutation() == first.getPermutation();
    };
    if (!first || !llvm::all_of(op->getUsers(), isAlike) || first.getPermutation()[last] != last ||
        static_cast<int64_t>(op.getDim()) != last ||
        !ScoreChain::leadsToUndoing(op.getInput(), first.getPermutation())) {
      return rewriter.notifyMatchFailure(op, "not between transposes that cancel");
    }
    Value scores = ScoreChain::transposed(rewriter, op.getInput(), first.getPermutation());
    Value moved = ir::SoftmaxOp::create(rewriter, op.getLoc(), scores, last);
    for (mlir::Operation* user : llvm::make_early_inc_range(op->getUsers())) {
      rewriter.replaceOp(user, moved);
    }
    return success();
  }
};

// softmax(scores) v with the queries of each head before its groups → transpose(transpose(..) v).
struct GroupsBeforeQueries : mlir::OpRewritePattern<ir::MatmulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::MatmulOp op, PatternRewriter& rewriter) const override {
    auto softmax = op.getLhs().getDefiningOp<ir::SoftmaxOp>();
    if (!matchTwoRows(op) || !softmax || !softmax->hasOneUse() ||
        !ScoreChain::leadsToTwoRows(softmax.getInput()) ||
        !ScoreChain::hasQueriesFirst(softmax.getInput())) {
      return rewriter.notifyMatchFailure(op, "no probabilities with queries before groups");
    }
    const Permutation swap = rowSwap(softmax.getType().getRank());
    Value rows = ir::TransposeOp::create(rewriter, op.getLoc(), softmax, swap);
    Value product = ir::MatmulOp::create(rewriter, op.getLoc(), rows, op.getRhs(),
                                         /*transpose_lhs=*/false, op.getTransposeRhs(),
                                         /*row_dims=*/2, /*sum_dims=*/1, /*column_dims=*/1);
    rewriter.replaceOpWithNewOp<ir::TransposeOp>(op, product, swap);
    return success();
  }
};

// transpose(reshape(attention)) of [b, h, s, e] → [b, g, h / g, s, e] → [b, s, g, h / g, e] →
// reshape(transpose(attention)).
struct GroupsBehindTranspose : mlir::OpRewritePattern<ir::TransposeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::TransposeOp op, PatternRewriter& rewriter) const override {
    auto split = op.getInput().getDefiningOp<ir::ReshapeOp>();
    if (!split || !split.getInput().getDefiningOp<ir::AttentionOp>() ||
        op.getPermutation() != llvm::ArrayRef<int64_t>{0, 3, 1, 2, 4} ||
        split.getType().getDimSize(0) != tensorType(split.getInput()).getDimSize(0) ||
        split.getType().getDimSize(3) != tensorType(split.getInput()).getDimSize(2) ||
        split.getType().getDimSize(4) != tensorType(split.getInput()).getDimSize(3)) {
      return rewriter.notifyMatchFailure(op, "no heads of an attention in groups");
    }
    Value swapped = ir::TransposeOp::create(rewriter, op.getLoc(), split.getInput(),
                                            llvm::ArrayRef<int64_t>{0, 2, 1, 3});
    rewriter.replaceOpWithNewOp<ir::ReshapeOp>(op, op.getType(), swapped);
    return success();
  }
};

}  // namespace

void addScoreOrder(mlir::RewritePatternSet& patterns) {
  patterns
      .add<RowsBeforeProduct, SoftmaxBetweenTransposes, GroupsBeforeQueries, GroupsBehindTranspose>(
          patterns.getContext());
}

}  // namespace oriel
