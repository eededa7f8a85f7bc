#include "passes/raise/split_merged_dims.h"

#include "ir/oriel/matmul_dims.h"
#include "mlir/IR/IRMapping.h"
#include "passes/raise/merged_dims.h"

namespace oriel {

namespace {

using mlir::LogicalResult;
using mlir::PatternRewriter;
using mlir::success;
using mlir::Value;

// For each dimension of a tensor the sizes that it is split into; itself where it stays whole.
using Parts = llvm::SmallVector<llvm::SmallVector<int64_t>>;

llvm::SmallVector<int64_t> joined(llvm::ArrayRef<llvm::SmallVector<int64_t>> parts) {
  llvm::SmallVector<int64_t> sizes;
  for (llvm::ArrayRef<int64_t> part : parts) llvm::append_range(sizes, part);
  return sizes;
}

// The parts that a reshape splits its input into, as far as the input was merged from them; nothing
// if it was not.
std::optional<Parts> matchSplit(ir::ReshapeOp op) {
  ir::ShardingRule rule = op.getShardingRule();
  Parts parts;
  bool splits = false;
  for (auto [dim, factors] : llvm::enumerate(rule.operands.front())) {
    const int64_t size = tensorType(op.getInput()).getDimSize(dim);
    llvm::SmallVector<int64_t> part = {size};  // innermost first
    if (factors.size() > 1) {
      llvm::SmallVector<int64_t> merged = mergedSizes(op.getInput(), dim);
      int64_t inner = 1;
      for (int factor : llvm::reverse(factors)) {
        inner *= rule.factors[factor].size;
        if (!llvm::is_contained(merged, inner) || inner == size) continue;
        const int64_t before = size / part.back();
        part.back() = inner / before;
        part.push_back(size / inner);
      }
    }
    splits = splits || part.size() > 1;
    parts.emplace_back(llvm::reverse(part));
  }
  return splits ? std::optional(parts) : std::nullopt;
}

Value split(PatternRewriter& rewriter, mlir::Location loc, Value value, const Parts& parts) {
  llvm::SmallVector<int64_t> shape = joined(parts);
  if (tensorType(value).getShape() == llvm::ArrayRef(shape)) return value;
  return ir::ReshapeOp::create(rewriter, loc, tensorType(value).clone(shape), value);
}

// The op on operands that are split, so that its result has the parts. Its operands broadcast to
// the result.
Value splitPointwise(PatternRewriter& rewriter, mlir::Operation* op, const Parts& parts) {
  mlir::IRMapping operands;
  for (Value operand : op->getOperands()) {
    llvm::ArrayRef<int64_t> shape = tensorType(operand).getShape();
    Parts own(parts.end() - shape.size(), parts.end());
    for (auto [size, part] : llvm::zip_equal(shape, own)) {
      if (size == 1) part.assign(part.size(), 1);
    }
    operands.map(operand, split(rewriter, op->getLoc(), operand, own));
  }
  mlir::Operation* copy = rewriter.clone(*op, operands);
  Value result = copy->getResult(0);
  result.setType(tensorType(result).clone(joined(parts)));
  return result;
}

// Null where the dimension of the softmax would be split.
Value splitSoftmax(PatternRewriter& rewriter, ir::SoftmaxOp op, const Parts& parts) {
  const auto dim = static_cast<size_t>(op.getDim());
  if (parts[dim].size() > 1) return {};
  return ir::SoftmaxOp::create(rewriter, op.getLoc(),
                               split(rewriter, op.getLoc(), op.getInput(), parts),
                               joined(llvm::ArrayRef(parts).take_front(dim)).size());
}

Value splitTranspose(PatternRewriter& rewriter, ir::TransposeOp op, const Parts& parts) {
  llvm::ArrayRef<int64_t> permutation = op.getPermutation();
  Parts before(parts.size());
  for (auto [from, part] : llvm::zip_equal(permutation, parts)) before[from] = part;
  llvm::SmallVector<int64_t> permuted;
  for (int64_t from : permutation) {
    const int64_t first = joined(llvm::ArrayRef(before).take_front(from)).size();
    for (size_t i = 0; i < before[from].size(); ++i) permuted.push_back(first + i);
  }
  return ir::TransposeOp::create(rewriter, op.getLoc(),
                                 split(rewriter, op.getLoc(), op.getInput(), before), permuted);
}

Value splitMatmul(PatternRewriter& rewriter, ir::MatmulOp op, const Parts& parts) {
  ir::MatmulDims dims = *ir::MatmulDims::of(op);
  llvm::ArrayRef<llvm::SmallVector<int64_t>> all = parts;
  auto batch = all.take_front(dims.batch.size());
  auto rows = all.slice(dims.batch.size(), dims.rows.size());
  auto columns = all.take_back(dims.columns.size());
  Parts sum;
  for (int64_t size : dims.sum) sum.push_back({size});
  auto splitOperand = [&](Value value, llvm::ArrayRef<llvm::SmallVector<int64_t>> first,
                          llvm::ArrayRef<llvm::SmallVector<int64_t>> second) {
    Parts own(batch);
    llvm::append_range(own, first);
    llvm::append_range(own, second);
    return split(rewriter, op.getLoc(), value, own);
  };
  Value lhs = op.getTransposeLhs() ? splitOperand(op.getLhs(), sum, rows)
                                   : splitOperand(op.getLhs(), rows, sum);
  Value rhs = op.getTransposeRhs() ? splitOperand(op.getRhs(), columns, sum)
                                   : splitOperand(op.getRhs(), sum, columns);
  return ir::MatmulOp::create(rewriter, op.getLoc(), lhs, rhs, op.getTransposeLhs(),
                              op.getTransposeRhs(), joined(rows).size(), sum.size(),
                              joined(columns).size());
}

// One that is split for a user is another one than that of the others.
bool isSharedTranspose(Value value) {
  return value.getDefiningOp<ir::TransposeOp>() && !value.hasOneUse();
}

// reshape(op(x)) that splits dimensions that x was merged from → op(reshape(x)), where the two
// meet.
struct SplitBeforeOp : mlir::OpRewritePattern<ir::ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::ReshapeOp op, PatternRewriter& rewriter) const override {
    mlir::Operation* producer = op.getInput().getDefiningOp();
    bool isPointwise = producer && producer->hasTrait<ir::Pointwise>();
    if (!isPointwise &&
        !llvm::isa_and_nonnull<ir::SoftmaxOp, ir::TransposeOp, ir::MatmulOp>(producer)) {
      return rewriter.notifyMatchFailure(op, "the input is of no op that takes more dimensions");
    }
    for (mlir::Operation* user : op.getInput().getUsers()) {
      if (!llvm::isa<ir::ReshapeOp>(user) || user->getResultTypes().front() != op.getType()) {
        return rewriter.notifyMatchFailure(op, "the input is used otherwise as well");
      }
    }
    if (llvm::any_of(producer->getOperands(), isSharedTranspose)) {
      return rewriter.notifyMatchFailure(op, "an operand would be transposed twice");
    }
    std::optional<Parts> parts = matchSplit(op);
    if (!parts) return rewriter.notifyMatchFailure(op, "splits nothing that was merged");
    Value result;
    if (isPointwise) result = splitPointwise(rewriter, producer, *parts);
    if (auto softmax = llvm::dyn_cast<ir::SoftmaxOp>(producer)) {
      result = splitSoftmax(rewriter, softmax, *parts);
    }
    if (auto transpose = llvm::dyn_cast<ir::TransposeOp>(producer)) {
      result = splitTranspose(rewriter, transpose, *parts);
    }
    if (auto product = llvm::dyn_cast<ir::MatmulOp>(producer)) {
      result = splitMatmul(rewriter, product, *parts);
    }
    if (!result) return rewriter.notifyMatchFailure(op, "splits what a softmax is over");
    rewriter.replaceOpWithNewOp<ir::ReshapeOp>(op, op.getType(), result);
    return success();
  }
};

// reshape(transpose(x)) that only splits dimensions, or drops those of size 1 →
// transpose(reshape(x)), where the transpose meets others.
struct SplitBeforeTranspose : mlir::OpRewritePattern<ir::ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::ReshapeOp op, PatternRewriter& rewriter) const override {
    auto transpose = op.getInput().getDefiningOp<ir::TransposeOp>();
    if (!transpose) return rewriter.notifyMatchFailure(op, "the input is not transposed");
    // The dimensions of the result that each dimension of the transposed value is split into.
    llvm::ArrayRef<int64_t> from = transpose.getType().getShape(), to = op.getType().getShape();
    llvm::SmallVector<std::pair<size_t, size_t>> parts;
    size_t next = 0;
    for (auto [d, size] : llvm::enumerate(from)) {
      size_t begin = next;
      int64_t product = 1;
      bool dropped = size == 1 && (next == to.size() || to[next] != 1) && transpose->hasOneUse();
      while (!dropped && next < to.size() && (product != size || next == begin))
        product *= to[next++];
      // Sizes of 1 at the end belong to the last one.
      if (d + 1 == from.size()) {
        while (next < to.size() && to[next] == 1) ++next;
      }
      if (product != size || size == 0) {
        return rewriter.notifyMatchFailure(op, "dimensions are merged");
      }
      parts.push_back({begin, next});
    }
    if (next != to.size()) return rewriter.notifyMatchFailure(op, "dimensions are merged");
    // The same splits in the order of x, and where each part then comes from.
    llvm::ArrayRef<int64_t> permutation = transpose.getPermutation();
    llvm::SmallVector<int64_t> shape, inverse(to.size());
    for (int64_t d = 0; d < static_cast<int64_t>(from.size()); ++d) {
      auto [begin, end] = parts[llvm::find(permutation, d) - permutation.begin()];
      for (size_t i = begin; i < end; ++i) {
        inverse[i] = shape.size();
        shape.push_back(to[i]);
      }
    }
    Value split = ir::ReshapeOp::create(rewriter, op.getLoc(), op.getType().clone(shape),
                                        transpose.getInput());
    rewriter.replaceOpWithNewOp<ir::TransposeOp>(op, split, inverse);
    return success();
  }
};

// The steps of the reshape that a value is, if it merges dimensions.
std::optional<SplitThenMerge> matchMerge(Value value) {
  auto reshape = value.getDefiningOp<ir::ReshapeOp>();
  std::optional<SplitThenMerge> steps;
  if (reshape) steps = splitThenMerge(reshape);
  return steps && steps->merges() ? steps : std::nullopt;
}

// What such a value is after the first step.
Value afterSplit(PatternRewriter& rewriter, Value merged, const SplitThenMerge& steps) {
  auto reshape = merged.getDefiningOp<ir::ReshapeOp>();
  return ir::ReshapeOp::create(rewriter, reshape.getLoc(), reshape.getType().clone(steps.sizes),
                               reshape.getInput());
}

// transpose(reshape(x)) that merges dimensions → reshape(transpose(x)), where the reshape meets the
// one behind it, which splits them again.
struct MergeAfterTranspose : mlir::OpRewritePattern<ir::TransposeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::TransposeOp op, PatternRewriter& rewriter) const override {
    bool meetsOthers = llvm::all_of(
        op->getUsers(), [](mlir::Operation* user) { return llvm::isa<ir::ReshapeOp>(user); });
    std::optional<SplitThenMerge> steps = matchMerge(op.getInput());
    if (!steps || !meetsOthers) {
      return rewriter.notifyMatchFailure(op, "no merged dimensions are split again");
    }
    llvm::SmallVector<int64_t> permutation;
    for (int64_t d : op.getPermutation()) llvm::append_range(permutation, steps->merged[d]);
    Value split = afterSplit(rewriter, op.getInput(), *steps);
    Value transposed = ir::TransposeOp::create(rewriter, op.getLoc(), split, permutation);
    rewriter.replaceOpWithNewOp<ir::ReshapeOp>(op, op.getType(), transposed);
    return success();
  }
};

// slice(reshape(x)) of which the merged dimensions stay whole → reshape(slice(x)).
struct MergeAfterSlice : mlir::OpRewritePattern<ir::SliceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::SliceOp op, PatternRewriter& rewriter) const override {
    std::optional<SplitThenMerge> steps = matchMerge(op.getInput());
    if (!steps) return rewriter.notifyMatchFailure(op, "no dimensions of the input are merged");
    llvm::SmallVector<int64_t> starts(steps->sizes.size(), 0), limits = steps->sizes;
    llvm::SmallVector<int64_t> strides(steps->sizes.size(), 1);
    for (auto [d, merged] : llvm::enumerate(steps->merged)) {
      if (merged.size() == 1) {
        starts[merged.front()] = op.getStarts()[d];
        limits[merged.front()] = op.getLimits()[d];
        strides[merged.front()] = op.getStrides()[d];
      } else if (op.getType().getDimSize(d) != tensorType(op.getInput()).getDimSize(d)) {
        return rewriter.notifyMatchFailure(op, "a merged dimension is sliced");
      }
    }
    Value slice =
        ir::SliceOp::create(rewriter, op.getLoc(), afterSplit(rewriter, op.getInput(), *steps),
                            starts, limits, strides);
    rewriter.replaceOpWithNewOp<ir::ReshapeOp>(op, op.getType(), slice);
    return success();
  }
};

}  // namespace

void addSplitMergedDims(mlir::RewritePatternSet& patterns) {
  patterns.add<SplitBeforeOp, SplitBeforeTranspose, MergeAfterTranspose, MergeAfterSlice>(
      patterns.getContext());
}

}  // namespace oriel
