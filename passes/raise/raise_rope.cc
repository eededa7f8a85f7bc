#include <tuple>

#include "ir/oriel/builders.h"
#include "passes/raise/match.h"
#include "passes/raise/passes.h"

namespace oriel {

#define GEN_PASS_DEF_RAISEROPE
#include "passes/raise/passes.h.inc"

namespace {

using mlir::LogicalResult;
using mlir::PatternRewriter;
using mlir::success;
using mlir::Value;

// How rotated elements are paired: the halves of the last dimension, or its neighbours.
enum class Pairing { kHalves, kNeighbours };

using Shape = llvm::SmallVector<int64_t>;

// `source` in another shape, of which there need not be a value: its elements in their order.
struct Reshaped {
  Value source;
  Shape shape;

  bool operator==(const Reshaped& other) const {
    return source == other.source && shape == other.shape;
  }
  bool is(Value value) const {
    auto reshape = value.getDefiningOp<ir::ReshapeOp>();
    return shapeOf(value) == llvm::ArrayRef(shape) &&
           (value == source || (reshape && reshape.getInput() == source));
  }
};

// Elements 0 or 1 of all pairs of `whole`.
struct PairPart {
  Reshaped whole;
  int64_t index;
  Pairing pairing;

  bool operator==(const PairPart& other) const {
    return whole == other.whole && index == other.index && pairing == other.pairing;
  }
};

// The value below a reshape that splits off or drops a dimension of size 1 among the last two.
Value withoutUnitDim(Value value) {
  auto reshape = value.getDefiningOp<ir::ReshapeOp>();
  if (!reshape) return value;
  llvm::SmallVector<int64_t> less = llvm::to_vector(shapeOf(reshape.getInput()));
  llvm::SmallVector<int64_t> more = llvm::to_vector(reshape.getType().getShape());
  if (less.size() > more.size()) std::swap(less, more);
  for (size_t back : {1, 2}) {
    if (more.size() < back || more[more.size() - back] != 1) continue;
    llvm::SmallVector<int64_t> dropped = more;
    dropped.erase(dropped.end() - back);
    if (dropped == less) return reshape.getInput();
  }
  return value;
}

// Whether the slice takes all of each dimension but `dim`.
bool slicesOnly(ir::SliceOp slice, int64_t dim) {
  llvm::ArrayRef<int64_t> shape = shapeOf(slice.getInput());
  for (auto [d, size] : llvm::enumerate(shape)) {
    if (static_cast<int64_t>(d) == dim) continue;
    if (slice.getStarts()[d] != 0 || slice.getType().getDimSize(d) != size) return false;
  }
  return true;
}

// The shape with its last two dimensions as one.
Shape withPairsMerged(llvm::ArrayRef<int64_t> shape) {
  Shape merged(shape.drop_back());
  merged.back() *= shape.back();
  return merged;
}

// One of two along a dimension of their own, the last or the one in front of it: by a slice, or by
// a gather of an index that is known (`x[.., 0]`).
std::optional<PairPart> matchOneOfTwo(Value value) {
  auto slice = value.getDefiningOp<ir::SliceOp>();
  auto gather = value.getDefiningOp<ir::GatherOp>();
  if (!slice && !gather) return std::nullopt;
  Value input = slice ? slice.getInput() : gather.getInput();
  const Shape shape(shapeOf(input));
  const int64_t rank = shape.size();
  for (int64_t dim : {rank - 1, rank - 2}) {
    if (rank < 2 || shape[dim] != 2) continue;
    std::optional<int64_t> index;
    if (gather && static_cast<int64_t>(gather.getDim()) == dim) index = knownRow(gather);
    if (slice && slice.getType().getDimSize(dim) == 1 && slicesOnly(slice, dim)) {
      index = slice.getStarts()[dim];
    }
    if (!index) continue;
    auto split = input.getDefiningOp<ir::ReshapeOp>();
    return PairPart{{split ? split.getInput() : input, withPairsMerged(shape)},
                    *index,
                    dim == rank - 1 ? Pairing::kNeighbours : Pairing::kHalves};
  }
  return std::nullopt;
}

std::optional<PairPart> matchPairPart(Value value) {
  value = withoutUnitDim(value);
  if (std::optional<PairPart> part = matchOneOfTwo(value)) return part;
  // A half or every other element.
  auto slice = value.getDefiningOp<ir::SliceOp>();
  if (!slice) return std::nullopt;
  const Shape shape(shapeOf(slice.getInput()));
  int64_t rank = shape.size(), last = rank - 1;
  if (rank < 1 || shape[last] % 2 != 0 || !slicesOnly(slice, last) ||
      slice.getType().getDimSize(last) != shape[last] / 2) {
    return std::nullopt;
  }
  int64_t start = slice.getStarts()[last], stride = slice.getStrides()[last],
          half = shape[last] / 2;
  if ((stride == 1 || half == 1) && (start == 0 || start == half)) {
    return PairPart{{slice.getInput(), shape}, start == 0 ? 0 : 1, Pairing::kHalves};
  }
  if (stride == 2 && start < 2) {
    return PairPart{{slice.getInput(), shape}, start, Pairing::kNeighbours};
  }
  return std::nullopt;
}

// Elements 0 and elements 1 of pairs, put together to a value of this shape, or one of another with
// the same elements in their order.
struct JoinedPairs {
  Value first, second;
  Pairing pairing;
  Shape shape;
};

std::optional<JoinedPairs> matchJoinedPairs(Value value) {
  auto concat = value.getDefiningOp<ir::ConcatOp>();
  auto reshape = value.getDefiningOp<ir::ReshapeOp>();
  if (reshape) concat = reshape.getInput().getDefiningOp<ir::ConcatOp>();
  if (!concat || concat.getInputs().size() != 2) return std::nullopt;
  Value first = concat.getInputs()[0], second = concat.getInputs()[1];
  int64_t rank = concat.getType().getRank(), dim = concat.getDim();
  if (first.getType() != second.getType()) return std::nullopt;
  if (!reshape) {
    if (dim != rank - 1) return std::nullopt;
    return JoinedPairs{first, second, Pairing::kHalves, Shape(shapeOf(value))};
  }
  // Stacked, then flattened.
  llvm::ArrayRef<int64_t> shape = concat.getType().getShape();
  if (rank < 2 || dim < rank - 2 || shape[dim] != 2) return std::nullopt;
  return JoinedPairs{withoutUnitDim(first), withoutUnitDim(second),
                     dim == rank - 1 ? Pairing::kNeighbours : Pairing::kHalves,
                     withPairsMerged(shape)};
}

// x where the value has -x2 in the place of x1, and x1 in that of x2.
std::optional<PairPart> matchTurned(Value value) {
  std::optional<JoinedPairs> joined = matchJoinedPairs(value);
  auto neg = joined ? withoutUnitDim(joined->first).getDefiningOp<ir::NegOp>() : ir::NegOp();
  if (!neg) return std::nullopt;
  std::optional<PairPart> second = matchPairPart(neg.getInput());
  std::optional<PairPart> first = matchPairPart(joined->second);
  if (!first || !second || !(first->whole == second->whole) || first->index != 0 ||
      second->index != 1 || first->pairing != joined->pairing ||
      second->pairing != joined->pairing || first->whole.shape != joined->shape ||
      joined->shape != shapeOf(value)) {
    return std::nullopt;
  }
  return first;
}

// Whether the value may be cos or sin: of floats, with a column for each of `columns`, aligned at
// the last dimension.
bool isAngleTable(Value table, int64_t rank, int64_t columns) {
  mlir::RankedTensorType type = tensorType(table);
  return type.getElementType().isFloat() && type.getRank() >= 1 && type.getRank() <= rank &&
         type.getShape().back() == columns;
}

Value createRope(PatternRewriter& rewriter, mlir::Location loc, Value x, Value cos, Value sin,
                 Pairing pairing) {
  const int64_t rank = rankOf(x);
  return ir::RopeOp::create(rewriter, loc, x, expandRank(rewriter, loc, cos, rank),
                            expandRank(rewriter, loc, sin, rank), /*inverse=*/false,
                            pairing == Pairing::kNeighbours);
}

LogicalResult replaceByRope(PatternRewriter& rewriter, mlir::Operation* op, Value x, Value cos,
                            Value sin, Pairing pairing) {
  Value rope = createRope(rewriter, op->getLoc(), x, cos, sin, pairing);
  rewriter.replaceOp(op, ir::reshapeTo(rewriter, op->getLoc(), rope, tensorType(op->getResult(0))));
  return success();
}

// x * cos + turned x * sin → rope.
struct RaiseRotation : mlir::OpRewritePattern<ir::AddOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::AddOp op, PatternRewriter& rewriter) const override {
    for (auto [straight, turned] : {std::pair<Value, Value>(op.getLhs(), op.getRhs()),
                                    std::pair<Value, Value>(op.getRhs(), op.getLhs())}) {
      auto sine = matchEither<ir::MulOp>(
          turned, [](Value value) { return matchTurned(value).has_value(); });
      if (!sine) continue;
      PairPart pairs = *matchTurned(sine->first);
      auto cosine =
          matchEither<ir::MulOp>(straight, [&](Value value) { return pairs.whole.is(value); });
      if (!cosine) continue;
      Value x = cosine->first;
      if (x.getType() != op.getType()) continue;
      const int64_t rank = op.getType().getRank(), columns = op.getType().getShape().back();
      if (!isAngleTable(cosine->second, rank, columns) ||
          !isAngleTable(sine->second, rank, columns)) {
        continue;
      }
      // The op has no cotangents for its tables.
      if (dependsOnParameter(cosine->second) || dependsOnParameter(sine->second)) continue;
      return replaceByRope(rewriter, op, x, cosine->second, sine->second, pairs.pairing);
    }
    return rewriter.notifyMatchFailure(op, "no x * cos + turned x * sin");
  }
};

// first * cos - second * sin, and second * cos + first * sin: parts of x, as a matcher finds them.
template <typename Part>
struct DifferenceAndSum {
  Part first, second;
  Value cos, sin;
};

// `match(value)` is the part that a value is; none for another one.
template <typename Part>
std::optional<DifferenceAndSum<Part>> matchDifferenceAndSum(
    Value difference, Value sum, llvm::function_ref<std::optional<Part>(Value)> match) {
  auto sub = difference.getDefiningOp<ir::SubOp>();
  auto add = sum.getDefiningOp<ir::AddOp>();
  if (!sub || !add || sub.getType() != add.getType()) return std::nullopt;
  auto isPart = [&](Value value) {
    return value.getType() == sub.getType() && match(value).has_value();
  };
  auto cos1 = matchEither<ir::MulOp>(sub.getLhs(), isPart),
       sin2 = matchEither<ir::MulOp>(sub.getRhs(), isPart),
       cos2 = matchEither<ir::MulOp>(add.getLhs(), isPart),
       sin1 = matchEither<ir::MulOp>(add.getRhs(), isPart);
  if (!cos1 || !sin2 || !cos2 || !sin1) return std::nullopt;
  const Part first = *match(cos1->first), second = *match(sin2->first);
  if (!(*match(cos2->first) == second)) std::swap(cos2, sin1);
  Value cos = cos1->second, sin = sin2->second;
  if (!(*match(cos2->first) == second) || !(*match(sin1->first) == first) || cos2->second != cos ||
      sin1->second != sin) {
    return std::nullopt;
  }
  // The op has no cotangents for its tables.
  if (dependsOnParameter(cos) || dependsOnParameter(sin)) return std::nullopt;
  return DifferenceAndSum<Part>{first, second, cos, sin};
}

// (x1 * cos - x2 * sin) joined with (x2 * cos + x1 * sin) → rope with an angle for each pair.
template <typename JoinOp>
struct RaiseJoinedRotation : mlir::OpRewritePattern<JoinOp> {
  using mlir::OpRewritePattern<JoinOp>::OpRewritePattern;

  LogicalResult matchAndRewrite(JoinOp op, PatternRewriter& rewriter) const override {
    std::optional<JoinedPairs> joined = matchJoinedPairs(op.getResult());
    if (!joined) return rewriter.notifyMatchFailure(op, "joins no pairs");
    auto pairs = matchDifferenceAndSum<PairPart>(joined->first, joined->second, matchPairPart);
    if (!pairs) return rewriter.notifyMatchFailure(op, "does not join a difference and a sum");
    const Reshaped& whole = pairs->first.whole;
    if (pairs->first.index != 0 || pairs->second.index != 1 || !(pairs->second.whole == whole) ||
        pairs->first.pairing != joined->pairing || pairs->second.pairing != joined->pairing) {
      return rewriter.notifyMatchFailure(op, "no rotation");
    }
    // The parts have the rank of the whole, so tables are aligned alike.
    const auto rank = static_cast<int64_t>(whole.shape.size());
    const int64_t half = whole.shape.back() / 2;
    if (whole.shape != joined->shape || rankOf(joined->first) != rank ||
        !isAngleTable(pairs->cos, rank, half) || !isAngleTable(pairs->sin, rank, half)) {
      return rewriter.notifyMatchFailure(op, "no tables of angles");
    }
    Value x = ir::reshapeTo(rewriter, op.getLoc(), whole.source,
                            tensorType(whole.source).clone(whole.shape));
    return replaceByRope(rewriter, op, x, pairs->cos, pairs->sin, joined->pairing);
  }
};

// Columns of a value: its last dimension from `start` on, every `stride`th.
struct Columns {
  Value source;
  int64_t start, stride, size;

  bool operator==(const Columns& other) const {
    return std::tie(source, start, stride, size) ==
           std::tie(other.source, other.start, other.stride, other.size);
  }
};
std::optional<Columns> matchColumns(Value value) {
  auto slice = value.getDefiningOp<ir::SliceOp>();
  const int64_t last = slice ? slice.getType().getRank() - 1 : -1;
  if (last < 0 || !slicesOnly(slice, last)) return std::nullopt;
  return Columns{slice.getInput(), slice.getStarts()[last], slice.getStrides()[last],
                 slice.getType().getDimSize(last)};
}

// A rotation of `count` columns of x from `start` on.
struct RotatedColumns {
  Value x;
  int64_t start, count;
  Value cos, sin;
  Pairing pairing;
};

std::optional<RotatedColumns> matchRotatedColumns(Value difference, Value sum, Value x,
                                                  Pairing pairing) {
  auto ofX = [&](Value value) {
    std::optional<Columns> columns = matchColumns(value);
    return columns && columns->source == x ? columns : std::nullopt;
  };
  auto pairs = matchDifferenceAndSum<Columns>(difference, sum, ofX);
  if (!pairs) return std::nullopt;
  const auto& [first, second, cos, sin] = *pairs;
  const int64_t half = first.size;
  const bool isHalves = pairing == Pairing::kHalves;
  const bool arePairs = second.size == half && second.stride == first.stride &&
                        (half == 1 || first.stride == (isHalves ? 1 : 2)) &&
                        second.start == first.start + (isHalves ? half : 1);
  if (!arePairs || !isAngleTable(cos, rankOf(x), half) || !isAngleTable(sin, rankOf(x), half)) {
    return std::nullopt;
  }
  return RotatedColumns{x, first.start, 2 * half, cos, sin, pairing};
}

std::optional<RotatedColumns> matchRotatedColumns(Value difference, Value sum, Pairing pairing) {
  auto sub = difference.getDefiningOp<ir::SubOp>();
  auto product = sub ? sub.getLhs().getDefiningOp<ir::MulOp>() : ir::MulOp();
  if (!product) return std::nullopt;
  for (Value operand : product->getOperands()) {
    const std::optional<Columns> columns = matchColumns(operand);
    if (!columns) continue;  // a table may be a slice, too
    auto found = matchRotatedColumns(difference, sum, columns->source, pairing);
    if (found) return found;
  }
  return std::nullopt;
}

Value createRope(PatternRewriter& rewriter, mlir::Location loc, const RotatedColumns& rotated) {
  Value part =
      ir::sliceDim(rewriter, loc, rotated.x, rankOf(rotated.x) - 1, rotated.start, rotated.count);
  return createRope(rewriter, loc, part, rotated.cos, rotated.sin, rotated.pairing);
}

// Halves of some columns that are turned in their places, among others that are joined → rope of
// these columns, joined with the others.
struct RaiseRotatedHalves : mlir::OpRewritePattern<ir::ConcatOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::ConcatOp op, PatternRewriter& rewriter) const override {
    if (static_cast<int64_t>(op.getDim()) != op.getType().getRank() - 1) {
      return rewriter.notifyMatchFailure(op, "joins no columns");
    }
    llvm::SmallVector<Value> inputs(op.getInputs());
    for (size_t i = 0; i + 1 < inputs.size(); ++i) {
      const auto rotated = matchRotatedColumns(inputs[i], inputs[i + 1], Pairing::kHalves);
      if (!rotated) continue;
      inputs[i] = createRope(rewriter, op.getLoc(), *rotated);
      inputs.erase(inputs.begin() + i + 1);
      if (inputs.size() == 1) {
        rewriter.replaceOp(op, inputs.front());
      } else {
        rewriter.replaceOpWithNewOp<ir::ConcatOp>(op, inputs, op.getDim());
      }
      return success();
    }
    return rewriter.notifyMatchFailure(op, "joins no difference and sum of rotated columns");
  }
};

// Neighbours among some columns that are turned in their places → rope of these columns.
struct RaiseRotatedNeighbours : mlir::OpRewritePattern<ir::ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::ReshapeOp op, PatternRewriter& rewriter) const override {
    const std::optional<JoinedPairs> joined = matchJoinedPairs(op.getResult());
    if (!joined || joined->pairing != Pairing::kNeighbours) {
      return rewriter.notifyMatchFailure(op, "joins no neighbours");
    }
    const auto rotated = matchRotatedColumns(joined->first, joined->second, Pairing::kNeighbours);
    if (!rotated) return rewriter.notifyMatchFailure(op, "no rotation of columns");
    rewriter.replaceOp(
        op, ir::reshapeTo(rewriter, op.getLoc(), createRope(rewriter, op.getLoc(), *rotated),
                          op.getType()));
    return success();
  }
};

// rope(x[.., :r]) joined with x[.., r:] → rope of the first r elements.
struct RaisePartialRotation : mlir::OpRewritePattern<ir::ConcatOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::ConcatOp op, PatternRewriter& rewriter) const override {
    int64_t last = op.getType().getRank() - 1;
    auto rope = op.getInputs()[0].getDefiningOp<ir::RopeOp>();
    if (op.getInputs().size() != 2 || static_cast<int64_t>(op.getDim()) != last || !rope ||
        rope.getRotaryDim() != 0) {
      return rewriter.notifyMatchFailure(op, "does not append to a rotation");
    }
    auto turned = rope.getInput().getDefiningOp<ir::SliceOp>();
    auto kept = op.getInputs()[1].getDefiningOp<ir::SliceOp>();
    if (!turned || !kept || turned.getInput() != kept.getInput() ||
        turned.getInput().getType() != op.getType() || !slicesOnly(turned, last) ||
        !slicesOnly(kept, last)) {
      return rewriter.notifyMatchFailure(op, "does not join parts of one value");
    }
    int64_t rotated = turned.getType().getDimSize(last);
    if (turned.getStarts()[last] != 0 || turned.getStrides()[last] != 1 ||
        kept.getStarts()[last] != rotated || kept.getStrides()[last] != 1) {
      return rewriter.notifyMatchFailure(op, "the parts are not in their places");
    }
    rewriter.replaceOpWithNewOp<ir::RopeOp>(op, turned.getInput(), rope.getCos(), rope.getSin(),
                                            rope.getInverse(), rope.getInterleaved(), rotated);
    return success();
  }
};

// x with a dimension in front, and one row of it → that row of x, as JAX's indices (`x[.., 0]`) are
// exported.
struct RowOfMovedDim : mlir::OpRewritePattern<ir::GatherOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::GatherOp op, PatternRewriter& rewriter) const override {
    auto moved = op.getInput().getDefiningOp<ir::TransposeOp>();
    if (!moved || op.getFirst() || op.getBatchDims() != 0 || !shapeOf(op.getIndices()).empty()) {
      return rewriter.notifyMatchFailure(op, "no single row of what has its dimensions moved");
    }
    llvm::SmallVector<int64_t> rest(moved.getPermutation());
    const int64_t dim = rest[op.getDim()];
    rest.erase(rest.begin() + op.getDim());
    if (!llvm::is_sorted(rest)) {
      return rewriter.notifyMatchFailure(op, "other dimensions change places");
    }
    rewriter.replaceOpWithNewOp<ir::GatherOp>(op, moved.getInput(), op.getIndices(), dim, Value());
    return success();
  }
};

struct RaiseRope : impl::RaiseRopeBase<RaiseRope> {
  void runOnOperation() override {
    mlir::RewritePatternSet patterns(&getContext());
    patterns
        .add<RaiseRotation, RaiseJoinedRotation<ir::ConcatOp>, RaiseJoinedRotation<ir::ReshapeOp>,
             RaiseRotatedHalves, RaiseRotatedNeighbours, RaisePartialRotation, RowOfMovedDim>(
            &getContext());
    if (failed(applyRaise(getOperation(), std::move(patterns)))) signalPassFailure();
  }
};

}  // namespace
}  // namespace oriel
