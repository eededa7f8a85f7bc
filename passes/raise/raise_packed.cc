#include <numeric>

#include "mlir/IR/Matchers.h"
#include "passes/raise/match.h"
#include "passes/raise/passes.h"
#include "passes/raise/piecewise.h"

namespace oriel {

#define GEN_PASS_DEF_RAISEPACKED
#include "passes/raise/passes.h.inc"

namespace {

using mlir::LogicalResult;
using mlir::PatternRewriter;
using mlir::success;
using mlir::Value;
using Ints = llvm::SmallVector<int64_t>;

// Into how many blocks of `rows` the indices fall, `groups` of as many each, that pick the same of
// each block: the most; 1 if they pick otherwise.
int64_t equalBlocks(llvm::ArrayRef<int64_t> indices, int64_t groups, int64_t rows) {
  const auto count = static_cast<int64_t>(indices.size());
  if (count == 0) return 1;
  for (int64_t blocks = std::gcd(groups, rows); blocks > 1; --blocks) {
    if (groups % blocks != 0 || rows % blocks != 0) continue;
    const int64_t picked = count / blocks, size = rows / blocks;
    bool areEqual = true;
    for (int64_t i = 0; areEqual && i < count; ++i) {
      const int64_t first = indices[i % picked];
      areEqual = first >= 0 && first < size && indices[i] == i / picked * size + first;
    }
    if (areEqual) return blocks;
  }
  return 1;
}

// gather(x, [1, 0, 3, 2]) → gather(x as [2, 2], [1, 0]) along the second dimension.
struct GatherInBlocks : mlir::OpRewritePattern<ir::GatherOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::GatherOp op, PatternRewriter& rewriter) const override {
    mlir::DenseElementsAttr constant;
    Ints groups(shapeOf(op.getIndices()));
    if (op.getFirst() || op.getBatchDims() != 0 || groups.empty() ||
        !mlir::matchPattern(op.getIndices(), mlir::m_Constant(&constant)) ||
        !constant.getElementType().isInteger(64)) {
      return rewriter.notifyMatchFailure(op, "not of known rows");
    }
    const Ints indices = llvm::to_vector(constant.getValues<int64_t>());
    const auto dim = static_cast<int64_t>(op.getDim());
    Ints shape(shapeOf(op.getInput()));
    const int64_t blocks = equalBlocks(indices, groups[0], shape[dim]);
    if (blocks == 1) return rewriter.notifyMatchFailure(op, "it does not pick the same of blocks");
    if (blocks == shape[dim] && op.getType() == op.getInput().getType()) {
      rewriter.replaceOp(op, op.getInput());  // each row in its place
      return success();
    }
    llvm::ArrayRef<int64_t> ofBlock = llvm::ArrayRef(indices).take_front(indices.size() / blocks);
    shape[dim] /= blocks;
    shape.insert(shape.begin() + dim, blocks);
    const mlir::Location loc = op.getLoc();
    Value split = ir::ReshapeOp::create(rewriter, loc, op.getType().clone(shape), op.getInput());
    groups[0] /= blocks;
    auto type = mlir::RankedTensorType::get(groups, rewriter.getI64Type());
    Value picked =
        ir::ConstantOp::create(rewriter, loc, mlir::DenseIntElementsAttr::get(type, ofBlock));
    Value rows = ir::GatherOp::create(rewriter, loc, split, picked, dim + 1, /*first=*/Value());
    rewriter.replaceOpWithNewOp<ir::ReshapeOp>(op, op.getType(), rows);
    return success();
  }
};

// concat(x, x, ..), one behind the other → x, repeated: ranks that share the result need not make
// all of it.
struct ConcatOfOne : mlir::OpRewritePattern<ir::ConcatOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::ConcatOp op, PatternRewriter& rewriter) const override {
    Value input = op.getInputs().front();
    Ints shape(shapeOf(input));
    const auto dim = static_cast<int64_t>(op.getDim());
    if (op.getInputs().size() == 1 || !llvm::all_equal(op.getInputs()) ||
        llvm::any_of(llvm::ArrayRef(shape).take_front(dim), [](int64_t n) { return n != 1; })) {
      return rewriter.notifyMatchFailure(op, "it does not repeat a tensor as a whole");
    }
    shape.insert(shape.begin() + dim, 1);
    Value one = ir::ReshapeOp::create(rewriter, op.getLoc(), op.getType().clone(shape), input);
    shape[dim] = static_cast<int64_t>(op.getInputs().size());
    Value all = ir::BroadcastOp::create(rewriter, op.getLoc(), op.getType().clone(shape), one);
    rewriter.replaceOpWithNewOp<ir::ReshapeOp>(op, op.getType(), all);
    return success();
  }
};

struct RaisePacked : impl::RaisePackedBase<RaisePacked> {
  void runOnOperation() override {
    mlir::RewritePatternSet patterns(&getContext());
    patterns.add<ConcatOfOne, GatherInBlocks>(&getContext());
    if (failed(applyRaise(getOperation(), std::move(patterns)))) return signalPassFailure();
    // What one of them takes away stands before it, where no other is to come.
    llvm::SmallVector<ir::ConcatOp> concats;
    getOperation().walk([&](ir::ConcatOp concat) { concats.push_back(concat); });
    mlir::IRRewriter rewriter(&getContext());
    Piecewise piecewise(rewriter);
    for (ir::ConcatOp concat : concats) (void)piecewise.computeAtOnce(concat);
  }
};

}  // namespace

}  // namespace oriel
