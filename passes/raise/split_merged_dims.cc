#include "passes/raise/split_merged_dims.h"

#include <vector>

#include "ir/oriel/builders.h"
#include "ir/oriel/inference.h"
#include "ir/oriel/matmul_dims.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"
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
    int64_t ofFactors = 1;                     // less where sizes straddle
    for (int factor : factors) ofFactors *= rule.factors[factor].size;
    if (factors.size() > 1 && ofFactors == size) {
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

// Whether a dimension is in several parts. What an operand repeats is of size 1, in any parts.
bool isSplit(llvm::ArrayRef<int64_t> part) { return part.size() > 1 && ir::elementCount(part) > 1; }

// Of operands that broadcast to the result.
llvm::SmallVector<Parts> broadcastParts(mlir::Operation* op, const Parts& parts) {
  llvm::SmallVector<Parts> operands;
  for (Value operand : op->getOperands()) {
    llvm::ArrayRef<int64_t> shape = shapeOf(operand);
    Parts& own = operands.emplace_back(parts.end() - shape.size(), parts.end());
    for (auto [size, part] : llvm::zip_equal(shape, own)) {
      if (size == 1) part.assign(part.size(), 1);
    }
  }
  return operands;
}

// Ops whose operands are split as their rules say.
bool splitsByRule(mlir::Operation* op) {
  return llvm::isa<ir::ArgmaxOp, ir::ExpertLinearOp, ir::GatherOp, ir::LayerNormOp, ir::LinearOp,
                   ir::MatmulOp, ir::ReduceMaxOp, ir::ReduceMeanOp, ir::ReduceMinOp,
                   ir::ReduceSumOp, ir::RmsNormOp, ir::ScatterAddOp, ir::SoftmaxOp, ir::TopkOp,
                   ir::TransposeOp>(op);
}

// Layers keep their columns, experts a row's choices. Those of more dimensions than a matrix, whose
// rows samples and positions are merged to for products, can't be split at all: positions that are
// apart behind the last block of a tower would be so in that block alone, which is to be as the
// others are.
bool isLayerOfOther(mlir::Operation* op, const Parts& parts) {
  if (!llvm::isa<ir::LinearOp, ir::ExpertLinearOp>(op)) return false;
  // Choices that come apart would do so in the input, too, which may have none.
  if (llvm::isa<ir::ExpertLinearOp>(op) && parts[parts.size() - 2].size() > 1) return true;
  return parts.back().size() > 1 || (llvm::isa<ir::LinearOp>(op) && parts.size() != 2);
}

// An operand has the parts of what it shares with the result, and stays whole otherwise. What no
// operand has, as the rows that indices name of a sum, is as the op says.
std::optional<llvm::SmallVector<Parts>> partsByRule(mlir::Operation* op, const Parts& parts) {
  const ir::ShardingRule rule = llvm::cast<ir::ShardableOpInterface>(op).getShardingRule();
  Parts ofFactor;
  for (const ir::Factor& factor : rule.factors) ofFactor.push_back({factor.size});
  for (auto [factors, part] : llvm::zip_equal(rule.results.front(), parts)) {
    if (part.size() == 1) continue;
    if (factors.size() != 1 || rule.factors[factors.front()].kind != ir::FactorKind::kParallel) {
      return std::nullopt;
    }
    auto hasIt = [&](const ir::TensorFactors& operand) {
      return llvm::is_contained(operand, factors);
    };
    if (llvm::none_of(rule.operands, hasIt)) return std::nullopt;
    ofFactor[factors.front()] = part;
  }
  llvm::SmallVector<Parts> operands;
  for (auto [operand, dims] : llvm::zip_equal(op->getOperands(), rule.operands)) {
    Parts& own = operands.emplace_back();
    for (auto [size, factors] : llvm::zip_equal(shapeOf(operand), dims)) {
      own.push_back({size});
      if (factors.size() == 1) own.back() = ofFactor[factors.front()];
    }
  }
  return operands;
}

// The parts that the op's operands have where its first result, the only one that is used, has
// these; nothing for ops that can't have more dimensions, or that work along what is split.
std::optional<llvm::SmallVector<Parts>> operandParts(mlir::Operation* op, const Parts& parts) {
  auto isUnused = [](Value result) { return result.use_empty(); };
  if (!llvm::all_of(op->getResults().drop_front(), isUnused) || isLayerOfOther(op, parts)) {
    return std::nullopt;
  }
  if (op->hasTrait<ir::Pointwise>() || llvm::isa<ir::BroadcastOp>(op)) {
    return broadcastParts(op, parts);
  }
  if (splitsByRule(op)) return partsByRule(op, parts);
  return std::nullopt;
}

// Cuts the factors of a dimension, outermost first, where the part is cut; false where they and the
// pieces don't nest.
bool cutFactors(llvm::ArrayRef<int64_t> part, const ir::FactorList& factors,
                const ir::ShardingRule& rule, Parts& ofFactor) {
  int64_t begin = 1, cut = 1;  // of the factor, and of the next piece: how many are before it
  size_t next = 0;
  for (int factor : factors) {
    const int64_t end = begin * rule.factors[factor].size;
    int64_t from = begin;
    ofFactor[factor].clear();
    while (next < part.size() && cut * part[next] < end) {
      cut *= part[next++];
      if (cut % from != 0) return false;
      if (cut == from) continue;  // it is where the factor begins
      ofFactor[factor].push_back(cut / from);
      from = cut;
    }
    if (end % from != 0) return false;
    ofFactor[factor].push_back(end / from);
    begin = end;
  }
  return ir::elementCount(part) == begin;
}

// The parts that the input of a reshape has where its result has these. A dimension of which the
// result has no piece stays whole.
std::optional<Parts> inputParts(ir::ReshapeOp op, const Parts& parts) {
  ir::ShardingRule rule = op.getShardingRule();
  Parts ofFactor;
  for (const ir::Factor& factor : rule.factors) ofFactor.push_back({factor.size});
  for (auto [factors, part] : llvm::zip_equal(rule.results.front(), parts)) {
    if (isSplit(part) && !cutFactors(part, factors, rule, ofFactor)) return std::nullopt;
  }
  Parts before;
  for (auto [dim, factors] : llvm::enumerate(rule.operands.front())) {
    const int64_t size = tensorType(op.getInput()).getDimSize(dim);
    llvm::SmallVector<int64_t>& part = before.emplace_back();
    bool isCut = false;
    for (int factor : factors) {
      llvm::append_range(part, ofFactor[factor]);
      isCut = isCut || isSplit(ofFactor[factor]);
    }
    if (!isCut) {
      part = {size};
    } else if (ir::elementCount(part) != size) {
      return std::nullopt;
    }
  }
  return before;
}

// How many dimensions the first `dims` are, in parts.
int64_t countOf(const Parts& parts, size_t dims) {
  return static_cast<int64_t>(joined(llvm::ArrayRef(parts).take_front(dims)).size());
}

// The dimensions that an op's attributes name, where its first operand and its result have these
// parts. The dimension that it works along is in one part.
void renumberDims(mlir::Operation* op, const Parts& before, const Parts& behind) {
  auto renumbered = [&](int64_t dim) { return countOf(before, dim); };
  llvm::TypeSwitch<mlir::Operation*>(op)
      .Case<ir::ArgmaxOp, ir::SoftmaxOp, ir::TopkOp>(
          [&](auto along) { along.setDim(renumbered(along.getDim())); })
      .Case([&](ir::GatherOp gather) {
        gather.setDim(renumbered(gather.getDim()));
        gather.setBatchDims(renumbered(gather.getBatchDims()));
      })
      .Case([&](ir::ScatterAddOp scatter) {
        scatter.setDim(countOf(behind, scatter.getDim()));
        scatter.setBatchDims(countOf(behind, scatter.getBatchDims()));
      })
      .Case<ir::ReduceMaxOp, ir::ReduceMeanOp, ir::ReduceMinOp, ir::ReduceSumOp>(
          [&](auto reduce) { reduce.setDims(llvm::map_to_vector(reduce.getDims(), renumbered)); })
      .Case([&](ir::TransposeOp transpose) {
        llvm::SmallVector<int64_t> permutation;
        for (int64_t from : transpose.getPermutation()) {
          const int64_t first = renumbered(from);
          for (size_t i = 0; i < before[from].size(); ++i) permutation.push_back(first + i);
        }
        transpose.setPermutation(permutation);
      });
}

// The op of operands in parts.
Value splitOp(PatternRewriter& rewriter, mlir::Operation* op, llvm::ArrayRef<Value> operands,
              llvm::ArrayRef<Parts> ofOperands, const Parts& parts) {
  mlir::Operation* copy = rewriter.clone(*op);
  copy->setOperands(operands);
  Value result = copy->getResult(0);
  result.setType(tensorType(result).clone(joined(parts)));
  for (Value ofRows : copy->getResults().drop_front()) {
    ofRows.setType(tensorType(ofRows).clone(joined(llvm::ArrayRef(parts).drop_back())));
  }
  renumberDims(copy, ofOperands.front(), parts);
  if (auto product = llvm::dyn_cast<ir::MatmulOp>(op)) {
    const ir::MatmulDims dims = *ir::MatmulDims::of(product);
    const int64_t rowsBegin = countOf(parts, dims.batch.size());
    const int64_t columnsBegin = countOf(parts, dims.batch.size() + dims.rows.size());
    auto split = llvm::cast<ir::MatmulOp>(copy);
    split.setRowDims(columnsBegin - rowsBegin);
    split.setColumnDims(countOf(parts, parts.size()) - columnsBegin);
  }
  return result;
}

// The ops between a reshape that splits dimensions and those that merged them.
class MergedRegion {
 public:
  // Whether the value can be had in these parts and nothing is split for it: all of the split
  // vanishes where dimensions were merged, behind ops that nothing else reads.
  bool find(Value root, const Parts& parts) {
    block_ = root.getParentBlock();
    open_.emplace_back(root, parts);
    while (!open_.empty()) {
      auto [value, own] = open_.pop_back_val();
      if (!visit(value, own)) return false;
    }
    for (const auto& [value, own] : inner_) {
      for (mlir::Operation* user : value.getUsers()) {
        const bool isEnd = value == root && llvm::isa<ir::ReshapeOp>(user);
        if (!isEnd && !hasInner(user)) return false;
      }
    }
    return hasInner(root.getDefiningOp());
  }

  // The root in its parts. The ops of before stay, until nothing reads the root.
  Value build(PatternRewriter& rewriter) const {
    llvm::DenseMap<Value, Value> made;
    for (mlir::Operation* op : ops()) {
      Value value = op->getResult(0);
      const Parts& own = inner_.find(value)->second;
      rewriter.setInsertionPoint(op);
      auto inParts = [&](Value operand, const Parts& parts) {
        auto found = made.find(operand);
        Value from = found == made.end() ? operand : found->second;
        return ir::reshapeTo(rewriter, op->getLoc(), from, tensorType(from).clone(joined(parts)));
      };
      if (llvm::isa<ir::ReshapeOp>(op)) {
        made[value] = inParts(op->getOperand(0), own);
        continue;
      }
      llvm::SmallVector<Parts> ofOperands = *operandParts(op, own);
      llvm::SmallVector<Value> operands;
      for (auto [operand, parts] : llvm::zip_equal(op->getOperands(), ofOperands)) {
        operands.push_back(inParts(operand, parts));
      }
      made[value] = splitOp(rewriter, op, operands, ofOperands, own);
    }
    return made.lookup(inner_.front().first);
  }

  void erase(PatternRewriter& rewriter) const {
    std::vector<mlir::Operation*> all = ops();
    for (mlir::Operation* op : llvm::reverse(all)) rewriter.eraseOp(op);
  }

 private:
  // In the order of the block.
  std::vector<mlir::Operation*> ops() const {
    std::vector<mlir::Operation*> ops;
    for (const auto& [value, own] : inner_) ops.push_back(value.getDefiningOp());
    llvm::sort(ops, [](mlir::Operation* a, mlir::Operation* b) { return a->isBeforeInBlock(b); });
    return ops;
  }

  bool hasInner(mlir::Operation* op) const {
    return op && op->getNumResults() > 0 && inner_.contains(op->getResult(0));
  }

  bool visit(Value value, const Parts& parts) {
    if (static_cast<int64_t>(joined(parts).size()) > ir::kMaxRank) return false;
    if (auto known = inner_.find(value); known != inner_.end()) return known->second == parts;
    mlir::Operation* op = value.getDefiningOp();
    if (llvm::none_of(parts, isSplit) || (op && op->hasTrait<mlir::OpTrait::ConstantLike>())) {
      return true;
    }
    if (!op || op->getBlock() != block_) return false;
    if (auto reshape = llvm::dyn_cast<ir::ReshapeOp>(op)) {
      std::optional<Parts> before = inputParts(reshape, parts);
      if (!before) return false;
      if (llvm::none_of(*before, isSplit)) return true;  // it merged them
      inner_.try_emplace(value, parts);
      open_.emplace_back(reshape.getInput(), std::move(*before));
      return true;
    }
    auto operands = operandParts(op, parts);
    if (!operands) return false;
    inner_.try_emplace(value, parts);
    for (auto [operand, own] : llvm::zip_equal(op->getOperands(), *operands)) {
      open_.emplace_back(operand, std::move(own));
    }
    return true;
  }

  mlir::Block* block_ = nullptr;
  llvm::SmallVector<std::pair<Value, Parts>> open_;
  llvm::MapVector<Value, Parts> inner_;  // with the root first
};

// reshape(op(x)) that splits dimensions that x was merged from → op(reshape(x)), where the two
// meet, for all ops in between.
struct SplitBeforeOps : mlir::OpRewritePattern<ir::ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::ReshapeOp op, PatternRewriter& rewriter) const override {
    Value input = op.getInput();
    mlir::Operation* producer = input.getDefiningOp();
    if (!producer || llvm::isa<ir::ReshapeOp>(producer)) {
      return rewriter.notifyMatchFailure(op, "of no op that could have more dimensions");
    }
    auto splitsAlike = [&](mlir::Operation* user) {
      return llvm::isa<ir::ReshapeOp>(user) && user->getResult(0).getType() == op.getType();
    };
    if (!llvm::all_of(input.getUsers(), splitsAlike)) {
      return rewriter.notifyMatchFailure(op, "the input is used otherwise as well");
    }
    std::optional<Parts> parts = matchSplit(op);
    MergedRegion region;
    if (!parts || !region.find(input, *parts)) {
      return rewriter.notifyMatchFailure(op, "not all that is split was merged");
    }
    Value split = region.build(rewriter);
    const mlir::RankedTensorType type = op.getType();  // which is one of the users, and goes
    // Others of the same type are split alike.
    for (mlir::Operation* user : llvm::make_early_inc_range(input.getUsers())) {
      rewriter.setInsertionPoint(user);
      rewriter.replaceOpWithNewOp<ir::ReshapeOp>(user, type, split);
    }
    region.erase(rewriter);
    return success();
  }
};

// reshape(transpose(x)) that only splits dimensions, or drops those of size 1 →
// transpose(reshape(x)), where the transpose meets others; also where nothing was merged.
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
  patterns.add<SplitBeforeOps, SplitBeforeTranspose, MergeAfterTranspose, MergeAfterSlice>(
      patterns.getContext());
}

}  // namespace oriel
