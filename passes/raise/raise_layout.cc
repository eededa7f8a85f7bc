#include "ir/oriel/builders.h"
#include "ir/oriel/matmul_dims.h"
#include "passes/raise/match.h"
#include "passes/raise/passes.h"
#include "passes/raise/split_merged_dims.h"

namespace oriel {

#define GEN_PASS_DEF_RAISELAYOUT
#include "passes/raise/passes.h.inc"

namespace {

using mlir::LogicalResult;
using mlir::PatternRewriter;
using mlir::success;
using mlir::Value;

// reshape(linear(x)) that changes the leading dimensions → linear(reshape(x)), where the reshape
// meets the one that flattened x. The columns may be split as well, into heads say.
struct ReshapeBeforeLinear : mlir::OpRewritePattern<ir::ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::ReshapeOp op, PatternRewriter& rewriter) const override {
    auto linear = op.getInput().getDefiningOp<ir::LinearOp>();
    if (!linear || !linear->hasOneUse()) {
      return rewriter.notifyMatchFailure(op, "not of a linear layer alone");
    }
    // Only to undo a flattening: else the reshape is as good where it is.
    auto flattened = linear.getInput().getDefiningOp<ir::ReshapeOp>();
    if (!flattened) return rewriter.notifyMatchFailure(op, "the input is not reshaped");
    const int64_t columns = linear.getType().getShape().back();
    llvm::SmallVector<int64_t> shape = llvm::to_vector(op.getType().getShape());
    bool splitsColumns = shape.empty() || shape.back() != columns;
    if (splitsColumns) {
      llvm::ArrayRef<int64_t> leading = shapeOf(flattened.getInput()).drop_back();
      if (shape.size() <= leading.size() || shapeOf(linear.getInput()).drop_back() == leading ||
          llvm::ArrayRef(shape).take_front(leading.size()) != leading ||
          shapeOf(flattened.getInput()).back() != shapeOf(linear.getInput()).back()) {
        return rewriter.notifyMatchFailure(op, "columns are split, and rows are not as they were");
      }
      shape.resize(leading.size() + 1);
    }
    shape.back() = shapeOf(linear.getInput()).back();
    Value reshaped = ir::ReshapeOp::create(
        rewriter, op.getLoc(), tensorType(linear.getInput()).clone(shape), flattened.getInput());
    Value moved = ir::LinearOp::create(rewriter, linear.getLoc(), reshaped, linear.getWeight(),
                                       linear.getBias(), linear.getTransposeWeight());
    if (splitsColumns) moved = ir::ReshapeOp::create(rewriter, op.getLoc(), op.getType(), moved);
    rewriter.replaceOp(op, moved);
    return success();
  }
};

// Dimensions of a value that come, whole, from dimensions of another one: (in the value, in the
// other).
using Origins = llvm::SmallVector<std::pair<int64_t, int64_t>>;

// The same dimensions in what an op makes that moves elements only; nothing for other ops, and
// where it joins one with others.
std::optional<Origins> movedBy(mlir::Operation* op, const Origins& origins) {
  Origins moved;
  for (auto [dim, origin] : origins) {
    std::optional<int64_t> place = movedDim(op, dim);
    if (!place) return std::nullopt;
    moved.emplace_back(*place, origin);
  }
  return moved;
}

// Whether all that transposes, splits and slices make of a value has these dimensions in the order
// that they came from. It looks at chains of up to `depth` ops.
bool restoresOrder(Value value, const Origins& origins, int depth) {
  if (depth == 0 || value.use_empty()) return false;
  return llvm::all_of(value.getUsers(), [&](mlir::Operation* user) {
    if (auto moved = movedBy(user, origins)) {
      return restoresOrder(user->getResult(0), *moved, depth - 1);
    }
    Origins sorted = origins;
    llvm::sort(sorted);
    return llvm::is_sorted(llvm::make_second_range(sorted));
  });
}

// linear(transpose(x)) of the leading dimensions → transpose(linear(x)), where it meets those that
// undo it: samples and positions change places around attention. The last dimension may be merged
// in between, as that of heads is.
struct LinearBeforeTranspose : mlir::OpRewritePattern<ir::LinearOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::LinearOp op, PatternRewriter& rewriter) const override {
    Value input = op.getInput();
    auto merge = input.getDefiningOp<ir::ReshapeOp>();
    if (merge) input = merge.getInput();
    auto transpose = input.getDefiningOp<ir::TransposeOp>();
    if (!transpose) return rewriter.notifyMatchFailure(op, "the input is not transposed");
    llvm::ArrayRef<int64_t> leading = shapeOf(op.getInput()).drop_back();
    llvm::ArrayRef<int64_t> from = transpose.getType().getShape();
    llvm::SmallVector<int64_t> permutation = llvm::to_vector(transpose.getPermutation());
    auto moves = [&](size_t d) { return permutation[d] != static_cast<int64_t>(d); };
    if (from.size() <= leading.size() || from.take_front(leading.size()) != leading ||
        llvm::any_of(llvm::seq(leading.size(), from.size()), moves)) {
      return rewriter.notifyMatchFailure(op, "other dimensions are transposed");
    }
    Origins origins;
    for (size_t d = 0; d < leading.size(); ++d) origins.emplace_back(d, permutation[d]);
    constexpr int kDepth = 64;
    if (!restoresOrder(op.getResult(), origins, kDepth)) {
      return rewriter.notifyMatchFailure(op, "no transpose behind it moves them back");
    }
    llvm::SmallVector<int64_t> shape =
        llvm::to_vector(shapeOf(transpose.getInput()).take_front(leading.size()));
    shape.push_back(shapeOf(op.getInput()).back());
    permutation.resize(shape.size());
    input = transpose.getInput();
    if (merge) {
      input = ir::ReshapeOp::create(rewriter, merge.getLoc(), merge.getType().clone(shape), input);
    }
    auto linear = ir::LinearOp::create(rewriter, op.getLoc(), input, op.getWeight(), op.getBias(),
                                       op.getTransposeWeight());
    rewriter.replaceOpWithNewOp<ir::TransposeOp>(op, linear, permutation);
    return success();
  }
};

// slice(transpose(x)) → transpose(slice(x)): the transposes of queries, keys and values sliced
// from one value vanish, each in its place.
struct SliceBeforeTranspose : mlir::OpRewritePattern<ir::SliceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::SliceOp op, PatternRewriter& rewriter) const override {
    auto transpose = op.getInput().getDefiningOp<ir::TransposeOp>();
    if (!transpose) return rewriter.notifyMatchFailure(op, "the input is not transposed");
    size_t rank = op.getStarts().size();
    llvm::SmallVector<int64_t> starts(rank), limits(rank), strides(rank);
    for (auto [d, from] : llvm::enumerate(transpose.getPermutation())) {
      starts[from] = op.getStarts()[d];
      limits[from] = op.getLimits()[d];
      strides[from] = op.getStrides()[d];
    }
    Value slice =
        ir::SliceOp::create(rewriter, op.getLoc(), transpose.getInput(), starts, limits, strides);
    rewriter.replaceOpWithNewOp<ir::TransposeOp>(op, slice, transpose.getPermutation());
    return success();
  }
};

// matmul(x, transpose(y)) → matmul(x, y) that reads y as it is stored; likewise of x. Here, since
// what becomes attention is recognised by its transposes.
struct TransposeInProduct : mlir::OpRewritePattern<ir::MatmulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::MatmulOp op, PatternRewriter& rewriter) const override {
    const size_t batch = ir::MatmulDims::of(op)->batch.size();
    auto asStored = [&](Value factor, size_t first, size_t second) -> Value {
      auto transpose = factor.getDefiningOp<ir::TransposeOp>();
      if (!transpose || !exchangesGroups(transpose, batch, first, second)) return {};
      return transpose.getInput();
    };
    size_t rows = op.getRowDims(), sum = op.getSumDims(), columns = op.getColumnDims();
    bool ta = op.getTransposeLhs(), tb = op.getTransposeRhs();
    Value lhs = asStored(op.getLhs(), ta ? sum : rows, ta ? rows : sum);
    Value rhs = asStored(op.getRhs(), tb ? columns : sum, tb ? sum : columns);
    if (!lhs && !rhs) return rewriter.notifyMatchFailure(op, "no factor is transposed");
    rewriter.replaceOpWithNewOp<ir::MatmulOp>(op, lhs ? lhs : op.getLhs(), rhs ? rhs : op.getRhs(),
                                              ta != (lhs != Value()), tb != (rhs != Value()), rows,
                                              sum, columns);
    return success();
  }
};

// A transpose that moves dimensions of size 1: a reshape does that, before it or instead of it.
struct TransposeOfUnitDims : mlir::OpRewritePattern<ir::TransposeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::TransposeOp op, PatternRewriter& rewriter) const override {
    llvm::ArrayRef<int64_t> from = shapeOf(op.getInput());
    llvm::ArrayRef<int64_t> to = op.getType().getShape(), permutation = op.getPermutation();
    // Dimensions of size 1 where the result has them, the others around them as they were.
    llvm::SmallVector<int64_t> others, shape, placed(from.size());
    for (auto [d, size] : llvm::enumerate(from)) {
      if (size != 1) others.push_back(d);
    }
    size_t next = 0;
    for (auto [d, size] : llvm::enumerate(to)) {
      if (size != 1) placed[others[next]] = d;
      shape.push_back(size == 1 ? 1 : from[others[next++]]);
    }
    llvm::SmallVector<int64_t> rest;
    for (auto [d, size] : llvm::enumerate(to)) {
      rest.push_back(size == 1 ? d : placed[permutation[d]]);
    }
    if (llvm::ArrayRef<int64_t>(rest) == permutation) {
      return rewriter.notifyMatchFailure(op, "no dimension of size 1 moves");
    }
    Value moved =
        ir::ReshapeOp::create(rewriter, op.getLoc(), op.getType().clone(shape), op.getInput());
    rewriter.replaceOpWithNewOp<ir::TransposeOp>(op, moved, rest);
    return success();
  }
};

// concat(transpose(x), transpose(y)) → transpose(concat(x, y)), where it may meet another.
struct ConcatBeforeTranspose : mlir::OpRewritePattern<ir::ConcatOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::ConcatOp op, PatternRewriter& rewriter) const override {
    auto first = op.getInputs()[0].getDefiningOp<ir::TransposeOp>();
    if (!first || op.getInputs().size() < 2) {
      return rewriter.notifyMatchFailure(op, "not of transposes");
    }
    llvm::SmallVector<Value> inputs;
    for (Value input : op.getInputs()) {
      auto transpose = input.getDefiningOp<ir::TransposeOp>();
      if (!transpose || !transpose->hasOneUse() ||
          transpose.getPermutation() != first.getPermutation()) {
        return rewriter.notifyMatchFailure(op, "not all are transposed so, for this alone");
      }
      inputs.push_back(transpose.getInput());
    }
    Value joined =
        ir::ConcatOp::create(rewriter, op.getLoc(), inputs, first.getPermutation()[op.getDim()]);
    rewriter.replaceOpWithNewOp<ir::TransposeOp>(op, joined, first.getPermutation());
    return success();
  }
};

// gather(x, c) of one known row → a slice, which other patterns move.
struct GatherOfOneRow : mlir::OpRewritePattern<ir::GatherOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::GatherOp op, PatternRewriter& rewriter) const override {
    std::optional<int64_t> row = knownRow(op);
    if (!row) return rewriter.notifyMatchFailure(op, "not of one row that is known, and there");
    Value slice =
        ir::sliceDim(rewriter, op.getLoc(), op.getInput(), op.getDim(), *row, 1, /*folds=*/true);
    rewriter.replaceOpWithNewOp<ir::ReshapeOp>(op, op.getType(), slice);
    return success();
  }
};

// Every s-th column → one of s neighbours: [.., f s] → [.., f, s], so that the f may be split. So
// are gates that lie between what they gate.
struct SliceOfNeighbours : mlir::OpRewritePattern<ir::SliceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::SliceOp op, PatternRewriter& rewriter) const override {
    mlir::RankedTensorType type = tensorType(op.getInput());
    if (type.getRank() == 0) return rewriter.notifyMatchFailure(op, "no columns");
    const int64_t last = type.getRank() - 1, columns = type.getDimSize(last);
    const int64_t stride = op.getStrides()[last], start = op.getStarts()[last];
    if (stride < 2 || start >= stride || columns % stride != 0 ||
        op.getType().getDimSize(last) != columns / stride) {
      return rewriter.notifyMatchFailure(op, "not of every so many columns");
    }
    llvm::SmallVector<int64_t> shape(type.getShape()), starts(op.getStarts()),
        limits(op.getLimits()), strides(op.getStrides());
    shape.back() = limits.back() = columns / stride;
    starts.back() = 0;
    strides.back() = 1;
    shape.push_back(stride);
    starts.push_back(start);
    limits.push_back(start + 1);
    strides.push_back(1);
    Value split = ir::ReshapeOp::create(rewriter, op.getLoc(), type.clone(shape), op.getInput());
    Value slice = ir::SliceOp::create(rewriter, op.getLoc(), split, starts, limits, strides);
    rewriter.replaceOpWithNewOp<ir::ReshapeOp>(op, op.getType(), slice);
    return success();
  }
};

// [0, 2, 1, 3]: heads and positions change places.
bool swapsHeads(ir::TransposeOp op) {
  return op && op.getPermutation() == llvm::ArrayRef<int64_t>{0, 2, 1, 3};
}

Value swapHeads(PatternRewriter& rewriter, mlir::Location loc, Value value) {
  llvm::SmallVector<int64_t> shape = llvm::to_vector(shapeOf(value));
  std::swap(shape[1], shape[2]);
  // Where one of them is 1, no element moves.
  if (shape[1] == 1 || shape[2] == 1) {
    return ir::ReshapeOp::create(rewriter, loc, tensorType(value).clone(shape), value);
  }
  return ir::TransposeOp::create(rewriter, loc, value, llvm::ArrayRef<int64_t>{0, 2, 1, 3});
}

// x where the value is x with heads and positions exchanged, at no cost.
bool isSwapped(Value value) {
  mlir::RankedTensorType type = tensorType(value);
  return type.getRank() == 4 && (swapsHeads(value.getDefiningOp<ir::TransposeOp>()) ||
                                 type.getDimSize(1) == 1 || type.getDimSize(2) == 1);
}

Value withoutSwap(PatternRewriter& rewriter, mlir::Location loc, Value value) {
  auto transpose = value.getDefiningOp<ir::TransposeOp>();
  return swapsHeads(transpose) ? Value(transpose.getInput()) : swapHeads(rewriter, loc, value);
}

// rope(transpose(x)) → transpose(rope(x)).
struct RopeBeforeTranspose : mlir::OpRewritePattern<ir::RopeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::RopeOp op, PatternRewriter& rewriter) const override {
    auto transpose = op.getInput().getDefiningOp<ir::TransposeOp>();
    if (!swapsHeads(transpose) || !isSwapped(op.getCos()) || !isSwapped(op.getSin())) {
      return rewriter.notifyMatchFailure(op, "input or tables would have to be transposed");
    }
    mlir::Location loc = op.getLoc();
    auto rope = ir::RopeOp::create(rewriter, loc, transpose.getInput(),
                                   withoutSwap(rewriter, loc, op.getCos()),
                                   withoutSwap(rewriter, loc, op.getSin()), op.getInverse(),
                                   op.getInterleaved(), op.getRotaryDim());
    rewriter.replaceOpWithNewOp<ir::TransposeOp>(op, rope, transpose.getPermutation());
    return success();
  }
};

// norm(transpose(x)) → transpose(norm(x)) where the last dimension stays.
template <typename NormOp>
struct NormBeforeTranspose : mlir::OpRewritePattern<NormOp> {
  using mlir::OpRewritePattern<NormOp>::OpRewritePattern;

  LogicalResult matchAndRewrite(NormOp op, PatternRewriter& rewriter) const override {
    auto transpose = op.getInput().template getDefiningOp<ir::TransposeOp>();
    bool resultOnly = llvm::all_of(op->getResults().drop_front(),
                                   [](Value statistic) { return statistic.use_empty(); });
    if (!swapsHeads(transpose) || !resultOnly) {
      return rewriter.notifyMatchFailure(op, "the input is not transposed");
    }
    llvm::SmallVector<Value> operands = llvm::to_vector(op->getOperands());
    operands[0] = transpose.getInput();
    auto norm = NormOp::create(rewriter, op.getLoc(), operands, op->getAttrs());
    auto swapped = ir::TransposeOp::create(rewriter, op.getLoc(), norm.getResult(),
                                           transpose.getPermutation());
    rewriter.replaceAllUsesWith(op.getResult(), swapped);
    rewriter.eraseOp(op);
    return success();
  }
};

// attention(transpose(q), transpose(k), transpose(v)) → transpose(attention(q, k, v)).
struct AttentionBeforeTranspose : mlir::OpRewritePattern<ir::AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::AttentionOp op, PatternRewriter& rewriter) const override {
    auto operands = {op.getQuery(), op.getKey(), op.getValue()};
    auto isTransposed = [](Value value) {
      return swapsHeads(value.getDefiningOp<ir::TransposeOp>());
    };
    if (op.getSequenceFirst() || !llvm::all_of(operands, isSwapped) ||
        !llvm::any_of(operands, isTransposed)) {
      return rewriter.notifyMatchFailure(op, "operands would have to be transposed");
    }
    mlir::Location loc = op.getLoc();
    auto attention = ir::AttentionOp::create(
        rewriter, loc, withoutSwap(rewriter, loc, op.getQuery()),
        withoutSwap(rewriter, loc, op.getKey()), withoutSwap(rewriter, loc, op.getValue()),
        op.getMask(), op.getSink(), op.getScale(), op.getCausal(), op.getWindow(), op.getSoftcap(),
        /*sequence_first=*/true);
    Value result = swapHeads(rewriter, loc, attention.getResult());
    rewriter.replaceOp(op, {result, attention.getLogsumexp()});
    return success();
  }
};

// select(c, transpose(x), y) → transpose(select(c, x, y)) where c and y are so at no cost.
struct SelectBeforeTranspose : mlir::OpRewritePattern<ir::SelectOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::SelectOp op, PatternRewriter& rewriter) const override {
    auto isTransposed = [](Value value) {
      return swapsHeads(value.getDefiningOp<ir::TransposeOp>());
    };
    if (!llvm::all_of(op->getOperands(), isSwapped) ||
        !llvm::any_of(op->getOperands(), isTransposed)) {
      return rewriter.notifyMatchFailure(op, "operands would have to be transposed");
    }
    mlir::Location loc = op.getLoc();
    Value select = ir::SelectOp::create(
        rewriter, loc, withoutSwap(rewriter, loc, op.getCondition()),
        withoutSwap(rewriter, loc, op.getOnTrue()), withoutSwap(rewriter, loc, op.getOnFalse()));
    rewriter.replaceOp(op, swapHeads(rewriter, loc, select));
    return success();
  }
};

// mean(transpose(x)) over the positions of all heads → reshape(mean(x)).
struct MeanBeforeTranspose : mlir::OpRewritePattern<ir::ReduceMeanOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::ReduceMeanOp op, PatternRewriter& rewriter) const override {
    auto transpose = op.getInput().getDefiningOp<ir::TransposeOp>();
    if (!swapsHeads(transpose) || !op.getKeepDims() || op.getDims() != llvm::ArrayRef<int64_t>{2}) {
      return rewriter.notifyMatchFailure(op, "not over transposed positions");
    }
    Value mean = ir::ReduceMeanOp::create(rewriter, op.getLoc(), transpose.getInput(),
                                          llvm::ArrayRef<int64_t>{1}, /*keep_dims=*/true);
    rewriter.replaceOp(op, swapHeads(rewriter, op.getLoc(), mean));
    return success();
  }
};

// transpose(broadcast(x)) → broadcast(transpose(x)): less is moved, and heads are repeated where
// attention looks for it.
struct TransposeBeforeBroadcast : mlir::OpRewritePattern<ir::TransposeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::TransposeOp op, PatternRewriter& rewriter) const override {
    auto broadcast = op.getInput().getDefiningOp<ir::BroadcastOp>();
    if (!broadcast || rankOf(broadcast.getInput()) != broadcast.getType().getRank()) {
      return rewriter.notifyMatchFailure(op, "nothing is repeated within its dimensions");
    }
    Value transposed =
        ir::TransposeOp::create(rewriter, op.getLoc(), broadcast.getInput(), op.getPermutation());
    rewriter.replaceOpWithNewOp<ir::BroadcastOp>(op, op.getType(), transposed);
    return success();
  }
};

// Which dimensions of `from` those of `to` are, -1 for a new one of size 1, if nothing but such
// dimensions comes and goes.
std::optional<llvm::SmallVector<int64_t>> keptDims(llvm::ArrayRef<int64_t> from,
                                                   llvm::ArrayRef<int64_t> to) {
  llvm::SmallVector<int64_t> kept;
  size_t next = 0;
  for (int64_t size : to) {
    while (next < from.size() && from[next] == 1 && size != 1) ++next;
    const bool isOld = next < from.size() && from[next] == size;
    if (!isOld && size != 1) return std::nullopt;
    kept.push_back(isOld ? static_cast<int64_t>(next++) : -1);
  }
  auto isOne = [](int64_t size) { return size == 1; };
  if (!llvm::all_of(from.drop_front(next), isOne)) return std::nullopt;
  return kept;
}

// reshape(broadcast(x)) that only adds or drops dimensions of size 1 → broadcast(reshape(x)).
struct UnitDimsBeforeBroadcast : mlir::OpRewritePattern<ir::ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::ReshapeOp op, PatternRewriter& rewriter) const override {
    auto broadcast = op.getInput().getDefiningOp<ir::BroadcastOp>();
    if (!broadcast || rankOf(broadcast.getInput()) != broadcast.getType().getRank()) {
      return rewriter.notifyMatchFailure(op, "nothing is repeated within its dimensions");
    }
    auto kept = keptDims(broadcast.getType().getShape(), op.getType().getShape());
    if (!kept) return rewriter.notifyMatchFailure(op, "dimensions are changed");
    llvm::SmallVector<int64_t> shape = llvm::map_to_vector(*kept, [&](int64_t dim) {
      return dim < 0 ? 1 : tensorType(broadcast.getInput()).getDimSize(dim);
    });
    Value split = ir::ReshapeOp::create(rewriter, op.getLoc(), op.getType().clone(shape),
                                        broadcast.getInput());
    rewriter.replaceOpWithNewOp<ir::BroadcastOp>(op, op.getType(), split);
    return success();
  }
};

struct RaiseLayout : impl::RaiseLayoutBase<RaiseLayout> {
  void runOnOperation() override {
    mlir::RewritePatternSet patterns(&getContext());
    addSplitMergedDims(patterns);
    patterns
        .add<ReshapeBeforeLinear, LinearBeforeTranspose, SliceBeforeTranspose, TransposeInProduct,
             TransposeOfUnitDims, ConcatBeforeTranspose, GatherOfOneRow, SliceOfNeighbours,
             RopeBeforeTranspose, AttentionBeforeTranspose, SelectBeforeTranspose,
             MeanBeforeTranspose, TransposeBeforeBroadcast, UnitDimsBeforeBroadcast,
             NormBeforeTranspose<ir::RmsNormOp>, NormBeforeTranspose<ir::LayerNormOp>>(
            &getContext());
    if (failed(applyRaise(getOperation(), std::move(patterns)))) signalPassFailure();
  }
};

}  // namespace
}  // namespace oriel
