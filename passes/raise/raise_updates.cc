#include "ir/oriel/builders.h"
#include "passes/raise/match.h"
#include "passes/raise/passes.h"

namespace oriel {

#define GEN_PASS_DEF_RAISEUPDATES
#include "passes/raise/passes.h.inc"

namespace {

using mlir::LogicalResult;
using mlir::PatternRewriter;
using mlir::success;
using mlir::Value;

// A stretch of a value along the dimension that is concatenated.
struct Piece {
  Value value;
  int64_t start, size;

  bool isWhole(int64_t dim) const { return size == tensorType(value).getDimSize(dim); }
};

// Whether the concatenation is made for `op` alone, so that it goes when `op` is made of its
// pieces: where something else reads it, more operands would take the place of fewer.
bool isPartOf(ir::ConcatOp concat, ir::ConcatOp op) {
  return concat && concat.getDim() == op.getDim() &&
         llvm::all_of(concat->getUsers(), [&](mlir::Operation* user) {
           auto isOp = [&](mlir::Operation* of) { return of == op; };
           return isOp(user) ||
                  (llvm::isa<ir::SliceOp>(user) && llvm::all_of(user->getUsers(), isOp));
         });
}

// Adds what the stretch is put together from.
void addPieces(const Piece& stretch, ir::ConcatOp op, llvm::SmallVectorImpl<Piece>& pieces) {
  if (stretch.size == 0) return;
  const auto dim = static_cast<int64_t>(op.getDim());
  if (auto slice = stretch.value.getDefiningOp<ir::SliceOp>()) {
    if (std::optional<int64_t> start = startOfStretch(slice, dim)) {
      return addPieces({slice.getInput(), *start + stretch.start, stretch.size}, op, pieces);
    }
  }
  auto concat = stretch.value.getDefiningOp<ir::ConcatOp>();
  if (isPartOf(concat, op)) {
    int64_t begin = 0;
    for (Value input : concat.getInputs()) {
      const int64_t size = tensorType(input).getDimSize(dim);
      const int64_t low = std::max(begin, stretch.start),
                    high = std::min(begin + size, stretch.start + stretch.size);
      if (low < high) addPieces({input, low - begin, high - low}, op, pieces);
      begin += size;
    }
    return;
  }
  if (!pieces.empty()) {
    Piece& last = pieces.back();
    if (last.value == stretch.value && last.start + last.size == stretch.start) {
      last.size += stretch.size;
      return;
    }
  }
  pieces.push_back(stretch);
}

struct ConcatOfPieces : mlir::OpRewritePattern<ir::ConcatOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::ConcatOp op, PatternRewriter& rewriter) const override {
    const auto dim = static_cast<int64_t>(op.getDim());
    auto isOfConcat = [&](Value input) {
      auto slice = input.getDefiningOp<ir::SliceOp>();
      if (slice && startOfStretch(slice, dim)) input = slice.getInput();
      return isPartOf(input.getDefiningOp<ir::ConcatOp>(), op);
    };
    llvm::SmallVector<Piece> pieces;
    for (Value input : op.getInputs()) {
      addPieces({input, 0, tensorType(input).getDimSize(dim)}, op, pieces);
    }
    if (pieces.size() >= op.getInputs().size() && llvm::none_of(op.getInputs(), isOfConcat)) {
      return rewriter.notifyMatchFailure(op, "no operand goes on, or is of a concatenation");
    }
    auto isSlice = [](Value input) { return input.getDefiningOp<ir::SliceOp>() != nullptr; };
    auto isCut = [&](const Piece& piece) {
      return !piece.isWhole(dim) && !splatValue(piece.value);  // a smaller splat is a constant
    };
    if (llvm::count_if(pieces, isCut) > llvm::count_if(op.getInputs(), isSlice)) {
      return rewriter.notifyMatchFailure(op, "there would be more slices");
    }
    llvm::SmallVector<Value> inputs;
    for (const Piece& piece : pieces) {
      inputs.push_back(ir::sliceDim(rewriter, op.getLoc(), piece.value, dim, piece.start,
                                    piece.size, /*folds=*/true));
    }
    if (inputs.empty()) return rewriter.notifyMatchFailure(op, "it has no elements");
    if (inputs.size() == 1) {
      rewriter.replaceOp(op, inputs.front());
    } else {
      rewriter.replaceOpWithNewOp<ir::ConcatOp>(op, inputs, dim);
    }
    return success();
  }
};

struct RaiseUpdates : impl::RaiseUpdatesBase<RaiseUpdates> {
  void runOnOperation() override {
    mlir::RewritePatternSet patterns(&getContext());
    patterns.add<ConcatOfPieces>(&getContext());
    if (failed(applyRaise(getOperation(), std::move(patterns)))) signalPassFailure();
  }
};

}  // namespace

}  // namespace oriel
