#include "passes/raise/match.h"
#include "passes/raise/passes.h"

namespace oriel {

#define GEN_PASS_DEF_RAISELINEAR
#include "passes/raise/passes.h.inc"

namespace {

using mlir::failure;
using mlir::LogicalResult;
using mlir::PatternRewriter;
using mlir::success;
using mlir::Value;

// linear(x, transpose(w)) → linear(x, w) with the flag flipped; also where dimensions are merged
// behind the transpose, as an einsum does with experts' weights: [e, f, d] → [d, e, f] → [d, e *
// f].
struct AbsorbWeightTranspose : mlir::OpRewritePattern<ir::LinearOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::LinearOp op, PatternRewriter& rewriter) const override {
    mlir::RankedTensorType type = tensorType(op.getWeight());
    auto merge = op.getWeight().getDefiningOp<ir::ReshapeOp>();
    Value moved = merge ? merge.getInput() : op.getWeight();
    auto transpose = moved.getDefiningOp<ir::TransposeOp>();
    if (!transpose) return rewriter.notifyMatchFailure(op, "the weight is not transposed");
    llvm::ArrayRef<int64_t> shape = transpose.getType().getShape();
    auto isExchange = [&](size_t rows) {
      return ir::elementCount(shape.take_front(rows)) == type.getDimSize(0) &&
             exchangesGroups(transpose, /*batch=*/0, rows, shape.size() - rows);
    };
    if (llvm::none_of(llvm::seq<size_t>(1, shape.size()), isExchange)) {
      return rewriter.notifyMatchFailure(op, "rows and columns don't change places");
    }
    Value weight = transpose.getInput();
    if (merge) {
      weight = ir::ReshapeOp::create(rewriter, merge.getLoc(),
                                     type.clone({type.getDimSize(1), type.getDimSize(0)}), weight);
    }
    rewriter.replaceOpWithNewOp<ir::LinearOp>(op, op.getInput(), weight, op.getBias(),
                                              !op.getTransposeWeight());
    return success();
  }
};

// linear(x, w) + b → linear(x, w, b).
struct AbsorbBias : mlir::OpRewritePattern<ir::AddOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::AddOp op, PatternRewriter& rewriter) const override {
    auto biasless = [](Value value) {
      auto linear = value.getDefiningOp<ir::LinearOp>();
      return linear && !linear.getBias() && linear->hasOneUse();
    };
    auto match = matchEither<ir::AddOp>(op.getResult(), biasless);
    if (!match) return rewriter.notifyMatchFailure(op, "no operand is a linear layer");
    auto [product, bias] = *match;
    // [n], or with dimensions of size 1 before it.
    mlir::RankedTensorType type = tensorType(bias);
    const int64_t columns = shapeOf(product).back();
    if (type.getRank() == 0 || type.getShape().back() != columns ||
        type.getNumElements() != columns || product.getType() != op.getType()) {
      return rewriter.notifyMatchFailure(op, "the other operand is no bias");
    }
    auto linear = product.getDefiningOp<ir::LinearOp>();
    if (type.getRank() > 1) {
      bias = ir::ReshapeOp::create(rewriter, op.getLoc(), type.clone({columns}), bias);
    }
    rewriter.replaceOpWithNewOp<ir::LinearOp>(op, linear.getInput(), linear.getWeight(), bias,
                                              linear.getTransposeWeight());
    return success();
  }
};

// reshape(linear(x, w)) + b, with the columns split → reshape(linear(x, w, reshape(b))): a bias for
// each head and each of its columns, as Keras' projections have it.
struct AbsorbSplitBias : mlir::OpRewritePattern<ir::AddOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::AddOp op, PatternRewriter& rewriter) const override {
    auto biaslessOf = [](Value value) {
      auto split = value.getDefiningOp<ir::ReshapeOp>();
      auto linear = split ? split.getInput().getDefiningOp<ir::LinearOp>() : ir::LinearOp();
      const bool isAlone = linear && !linear.getBias() && split->hasOneUse();
      return isAlone && linear->hasOneUse() ? linear : ir::LinearOp();
    };
    auto match = matchEither<ir::AddOp>(op.getResult(), [&](Value value) {
      return value.getType() == op.getType() && biaslessOf(value);
    });
    if (!match) return rewriter.notifyMatchFailure(op, "no operand is a linear layer");
    ir::LinearOp linear = biaslessOf(match->first);
    const int64_t columns = linear.getType().getShape().back();
    mlir::RankedTensorType bias = tensorType(match->second);
    const size_t rank = bias.getRank();
    if (rank == 0 || rank > op.getType().getShape().size() || bias.getNumElements() != columns ||
        op.getType().getShape().take_back(rank) != bias.getShape()) {
      return rewriter.notifyMatchFailure(op, "the other operand has no element for each column");
    }
    Value flat = match->second;
    if (rank > 1) flat = ir::ReshapeOp::create(rewriter, op.getLoc(), bias.clone({columns}), flat);
    Value biased = ir::LinearOp::create(rewriter, op.getLoc(), linear.getInput(),
                                        linear.getWeight(), flat, linear.getTransposeWeight());
    rewriter.replaceOpWithNewOp<ir::ReshapeOp>(op, op.getType(), biased);
    return success();
  }
};

// Whether this dimension is the last one, or becomes it in all that transposes, splits and slices
// make of the value, at most `depth` behind each other.
bool becomesLast(Value value, int64_t dim, int depth) {
  if (dim + 1 == rankOf(value)) return true;
  if (depth == 0 || value.use_empty()) return false;
  return llvm::all_of(value.getUsers(), [&](mlir::Operation* user) {
    std::optional<int64_t> moved = movedDim(user, dim);
    return moved && becomesLast(user->getResult(0), *moved, depth - 1);
  });
}

// conv(x, w, b) of patches that lie side by side → linear(patches, w, b), one product in place of
// one for each sample. Where a sample has several patches the result is transposed, so only if what
// follows wants the channels last anyway.
struct ConvOfPatches : mlir::OpRewritePattern<ir::ConvOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::ConvOp op, PatternRewriter& rewriter) const override {
    mlir::RankedTensorType input = tensorType(op.getInput()), weight = tensorType(op.getWeight());
    llvm::ArrayRef<int64_t> kernel = weight.getShape().drop_front(2);
    llvm::ArrayRef<int64_t> result = op.getType().getShape();
    const int64_t samples = result[0], channels = result[1];
    const int64_t patches = ir::elementCount(result.drop_front(2));
    auto isOne = [](int64_t dilation) { return dilation == 1; };
    if (op.getGroup() != 1 || !llvm::all_of(op.getDilations(), isOne) ||
        llvm::any_of(op.getPads(), [](int64_t pad) { return pad != 0; })) {
      return rewriter.notifyMatchFailure(op, "padded, dilated or grouped");
    }
    for (auto [size, stride, count] :
         llvm::zip_equal(kernel, op.getStrides(), result.drop_front(2))) {
      if (count != 1 && stride != size) {
        return rewriter.notifyMatchFailure(op, "patches overlap, or leave gaps");
      }
    }
    if (input.getNumElements() == 0 || op.getType().getNumElements() == 0) {
      return rewriter.notifyMatchFailure(op, "no patches");
    }
    constexpr int kDeepest = 20;
    if (patches > 1 && !becomesLast(op.getResult(), 1, kDeepest)) {
      return rewriter.notifyMatchFailure(op, "its channels stay before its positions");
    }
    mlir::Location loc = op.getLoc();
    // [b, c, d..] → [b, c, e, k, ..] → [b, e.., c, k..].
    llvm::SmallVector<int64_t> limits{samples, input.getDimSize(1)}, split = limits;
    llvm::SmallVector<int64_t> permutation{0}, within{1};
    for (auto [size, count] : llvm::zip_equal(kernel, result.drop_front(2))) {
      limits.push_back(size * count);
      permutation.push_back(split.size());
      within.push_back(split.size() + 1);
      split.append({count, size});
    }
    llvm::append_range(permutation, within);
    Value x = op.getInput();
    if (llvm::ArrayRef<int64_t>(limits) != input.getShape()) {
      llvm::SmallVector<int64_t> starts(limits.size(), 0), strides(limits.size(), 1);
      x = ir::SliceOp::create(rewriter, loc, x, starts, limits, strides);
    }
    if (patches > 1) {
      x = ir::ReshapeOp::create(rewriter, loc, input.clone(split), x);
      x = ir::TransposeOp::create(rewriter, loc, x, permutation);
    }
    // [b, e.., c k..] and [b, e.., o].
    llvm::SmallVector<int64_t> rows{samples};
    if (patches > 1) llvm::append_range(rows, result.drop_front(2));
    rows.push_back(weight.getNumElements() / channels);
    x = ir::ReshapeOp::create(rewriter, loc, input.clone(rows), x);
    Value w = ir::ReshapeOp::create(rewriter, op.getWeight().getLoc(),
                                    weight.clone({channels, rows.back()}), op.getWeight());
    Value y = ir::LinearOp::create(rewriter, loc, x, w, op.getBias(), /*transpose_weight=*/true);
    if (patches == 1) {
      rewriter.replaceOpWithNewOp<ir::ReshapeOp>(op, op.getType(), y);
      return success();
    }
    // [b, e.., o] → [b, o, e..].
    auto channelsFirst = [&](mlir::Operation* replaced, Value last) {
      llvm::SmallVector<int64_t> permutation{0, rankOf(last) - 1};
      for (int64_t d = 1; d < permutation[1]; ++d) permutation.push_back(d);
      rewriter.replaceOpWithNewOp<ir::TransposeOp>(replaced, last, permutation);
    };
    // Positions that are merged are so before the transpose, which then meets another.
    for (mlir::Operation* user : llvm::make_early_inc_range(op->getUsers())) {
      auto merge = llvm::dyn_cast<ir::ReshapeOp>(user);
      if (!merge) continue;
      llvm::ArrayRef<int64_t> shape = merge.getType().getShape();
      if (shape.size() < 2 || shape.take_front(2) != result.take_front(2)) continue;
      llvm::SmallVector<int64_t> last{samples};
      llvm::append_range(last, shape.drop_front(2));
      last.push_back(channels);
      rewriter.setInsertionPoint(merge);
      channelsFirst(merge,
                    ir::ReshapeOp::create(rewriter, merge.getLoc(), op.getType().clone(last), y));
    }
    rewriter.setInsertionPoint(op);
    channelsFirst(op, y);
    return success();
  }
};

struct RaiseLinear : impl::RaiseLinearBase<RaiseLinear> {
  void runOnOperation() override {
    mlir::RewritePatternSet patterns(&getContext());
    patterns.add<AbsorbBias, AbsorbSplitBias, AbsorbWeightTranspose, ConvOfPatches>(&getContext());
    if (failed(applyRaise(getOperation(), std::move(patterns)))) signalPassFailure();
  }
};

}  // namespace
}  // namespace oriel
