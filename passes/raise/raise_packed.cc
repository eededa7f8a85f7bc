#include <numeric>

#include "mlir/IR/Matchers.h"
#include "passes/raise/match.h"
#include "passes/raise/passes.h"

namespace oriel {

#define GEN_PASS_DEF_RAISEPACKED
#include "passes/raise/passes.h.inc"

namespace {

using mlir::LogicalResult;
using mlir::PatternRewriter;
using mlir::success;
using mlir::Value;
using Ints = llvm::SmallVector<int64_t>;

// Of [b, s, h, d].
constexpr int64_t kSequence = 1;

int64_t lengthOf(Value value) { return tensorType(value).getDimSize(kSequence); }

// A sequence within a value that holds several, one behind the other.
struct Sequence {
  Value all;
  int64_t start, length;

  bool isFollowedBy(const Sequence& next) const {
    return all == next.all && length == next.length && start + length == next.start;
  }
};

// Attention of one of them, of which nothing else is used.
struct SequenceAttention {
  ir::AttentionOp op;
  llvm::SmallVector<Sequence, 3> operands;  // query, key, value
};

std::optional<SequenceAttention> matchSequence(Value value) {
  auto op = value.getDefiningOp<ir::AttentionOp>();
  if (!op || !op.getSequenceFirst() || value != op.getResult() || !value.hasOneUse() ||
      !op.getLogsumexp().use_empty()) {
    return std::nullopt;
  }
  // One mask for all, whatever their number.
  if (op.getMask() && tensorType(op.getMask()).getDimSize(0) != 1) return std::nullopt;
  SequenceAttention attention{op, {}};
  for (Value operand : {op.getQuery(), op.getKey(), op.getValue()}) {
    auto slice = operand.getDefiningOp<ir::SliceOp>();
    std::optional<int64_t> start = slice ? startOfStretch(slice, kSequence) : std::nullopt;
    if (!start) return std::nullopt;
    attention.operands.push_back({slice.getInput(), *start, lengthOf(operand)});
  }
  return attention;
}

bool isFollowedBy(const SequenceAttention& attention, const SequenceAttention& next) {
  for (auto [one, other] : llvm::zip_equal(attention.operands, next.operands)) {
    if (!one.isFollowedBy(other)) return false;
  }
  ir::AttentionOp one = attention.op, other = next.op;
  return one->getAttrDictionary() == other->getAttrDictionary() && one.getMask() == other.getMask();
}

// The sequences of a run as a batch: [b n, s, h, d].
Value asBatch(PatternRewriter& rewriter, mlir::Location loc, const Sequence& first, int64_t count) {
  Value value =
      sliceStretch(rewriter, loc, first.all, kSequence, first.start, first.length * count);
  Ints shape(tensorType(value).getShape());
  shape[0] *= count;
  shape[kSequence] = first.length;
  return ir::ReshapeOp::create(rewriter, loc, tensorType(value).clone(shape), value);
}

// [b, n s, h, e]
Value attend(PatternRewriter& rewriter, llvm::ArrayRef<SequenceAttention> run) {
  ir::AttentionOp op = run.front().op;
  const auto count = static_cast<int64_t>(run.size());
  llvm::SmallVector<Value> operands;
  for (const Sequence& sequence : run.front().operands) {
    operands.push_back(asBatch(rewriter, op.getLoc(), sequence, count));
  }
  if (op.getMask()) operands.push_back(op.getMask());
  auto attention = ir::AttentionOp::create(rewriter, op.getLoc(), operands, op->getAttrs());
  mlir::RankedTensorType type = tensorType(op.getResult());
  Ints shape(type.getShape());
  shape[kSequence] *= count;
  return ir::ReshapeOp::create(rewriter, op.getLoc(), type.clone(shape), attention.getResult());
}

struct AttentionOfPacked : mlir::OpRewritePattern<ir::ConcatOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::ConcatOp op, PatternRewriter& rewriter) const override {
    if (op.getType().getRank() != 4 || static_cast<int64_t>(op.getDim()) != kSequence) {
      return rewriter.notifyMatchFailure(op, "not of sequences");
    }
    llvm::SmallVector<Value> results;
    llvm::SmallVector<SequenceAttention> run;
    bool joins = false;
    auto endRun = [&] {
      if (run.size() == 1) results.push_back(run.front().op.getResult());
      if (run.size() > 1) {
        results.push_back(attend(rewriter, run));
        joins = true;
      }
      run.clear();
    };
    for (Value input : op.getInputs()) {
      std::optional<SequenceAttention> attention = matchSequence(input);
      if (!attention || (!run.empty() && !isFollowedBy(run.back(), *attention))) endRun();
      if (attention) {
        run.push_back(*attention);
      } else {
        results.push_back(input);
      }
    }
    endRun();
    if (!joins) return rewriter.notifyMatchFailure(op, "no attention of sequences that follow");
    if (results.size() == 1) {
      rewriter.replaceOp(op, results.front());
    } else {
      rewriter.replaceOpWithNewOp<ir::ConcatOp>(op, results, kSequence);
    }
    return success();
  }
};

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
    Ints groups(tensorType(op.getIndices()).getShape());
    if (op.getFirst() || op.getBatchDims() != 0 || groups.empty() ||
        !mlir::matchPattern(op.getIndices(), mlir::m_Constant(&constant)) ||
        !constant.getElementType().isInteger(64)) {
      return rewriter.notifyMatchFailure(op, "not of known rows");
    }
    const Ints indices = llvm::to_vector(constant.getValues<int64_t>());
    const auto dim = static_cast<int64_t>(op.getDim());
    Ints shape(tensorType(op.getInput()).getShape());
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

struct RaisePacked : impl::RaisePackedBase<RaisePacked> {
  void runOnOperation() override {
    mlir::RewritePatternSet patterns(&getContext());
    patterns.add<AttentionOfPacked, GatherInBlocks>(&getContext());
    if (failed(applyRaise(getOperation(), std::move(patterns)))) signalPassFailure();
  }
};

}  // namespace

}  // namespace oriel
