#include "passes/raise/attention_operands.h"

#include <array>

namespace oriel {

using mlir::Value;

namespace {

// [b, s, h, d] → [b, h, s, d] and → [b, h, d, s].
constexpr std::array<int64_t, 4> kHeadsFirst = {0, 2, 1, 3}, kSwappedHeadsFirst = {0, 2, 3, 1};
// [b, s, g, h / g, d] → [b, g, h / g, s, d].
constexpr std::array<int64_t, 5> kGroupsFirst = {0, 2, 3, 1, 4};

// Whether it is such a transpose, for heads [b, h, s, d]: not where the batch is split as well.
bool isOfGroups(ir::TransposeOp op, llvm::ArrayRef<int64_t> shape) {
  if (!op || op.getPermutation() != llvm::ArrayRef<int64_t>(kGroupsFirst)) return false;
  llvm::ArrayRef<int64_t> sizes = op.getType().getShape();
  return sizes[0] == shape[0] && sizes.take_back(2) == shape.take_back(2);
}

}  // namespace

AttentionOperand::AttentionOperand(Value value)
    : source(value), shape(llvm::to_vector(shapeOf(value))) {
  for (;;) {
    if (auto scaled = matchScaled(source)) {
      source = scaled->first;
      scale *= scaled->second;
    } else if (Value inner = matchTransposed(source)) {
      source = inner;
      transposed = !transposed;
      std::swap(shape[shape.size() - 2], shape.back());
    } else {
      return;
    }
  }
}

AttentionOperand AttentionOperand::asIs(Value value) {
  AttentionOperand operand;
  operand.source = value;
  operand.shape = llvm::to_vector(shapeOf(value));
  return operand;
}

void AttentionOperand::swapLastTwo() {
  swapped = true;
  transposed = !transposed;
  std::swap(shape[shape.size() - 2], shape.back());
}

AttentionOperand AttentionOperand::withoutRepeatedHeads() const {
  Value repeated = source;
  // Heads may be repeated where they are behind the positions still: [b, t, g, 1, d].
  auto transpose = repeated.getDefiningOp<ir::TransposeOp>();
  llvm::ArrayRef<int64_t> headsFirst = swapped ? kSwappedHeadsFirst : kHeadsFirst;
  bool behind = transpose && transpose.getPermutation() == headsFirst;
  if (behind) repeated = transpose.getInput();
  if (auto merge = repeated.getDefiningOp<ir::ReshapeOp>()) repeated = merge.getInput();
  auto repeat = repeated.getDefiningOp<ir::BroadcastOp>();
  if (!repeat || (swapped && !behind) || sequenceFirst || shape.size() != 4) return *this;
  llvm::SmallVector<int64_t> one = llvm::to_vector(shapeOf(repeat.getInput()));
  llvm::SmallVector<int64_t> many = llvm::to_vector(repeat.getType().getShape());
  // A single head that is repeated is a group of its own.
  size_t heads = behind ? 2 : 1;
  for (auto* sizes : {&one, &many}) {
    if (sizes->size() == 4) sizes->insert(sizes->begin() + heads, 1);
  }
  size_t repeats = heads + 1;
  for (size_t d = one.size(); d-- > 0 && one.size() > 5;) {
    if (one[d] != 1 || many[d] != 1) continue;
    one.erase(one.begin() + d);
    many.erase(many.begin() + d);
  }
  if (one.size() != 5 || many.size() != 5 || one[repeats] != 1) return *this;
  llvm::SmallVector<int64_t> onlyRepeats = one;
  onlyRepeats[repeats] = many[repeats];
  int64_t groups = one[heads], positions = one[behind ? 1 : 3];
  llvm::SmallVector<int64_t> merged = {one[0], groups * many[repeats], positions, one[4]};
  if (many != onlyRepeats || shape != merged) return *this;
  llvm::SmallVector<int64_t> mergedBehind = {merged[0], merged[2], merged[1], merged[3]};
  if (behind && shapeOf(transpose.getInput()) != llvm::ArrayRef(mergedBehind)) {
    return *this;
  }
  AttentionOperand result = *this;
  result.source = repeat.getInput();
  if (auto split = result.source.getDefiningOp<ir::ReshapeOp>()) result.source = split.getInput();
  result.shape = {one[0], groups, positions, one[4]};
  result.sequenceFirst = behind;
  result.swapped = false;
  return result;
}

Value AttentionOperand::materialize(mlir::PatternRewriter& rewriter, mlir::Location loc) const {
  Value result = source;
  auto reshaped = [&](llvm::ArrayRef<int64_t> to) {
    if (shapeOf(result) == to) return result;
    return Value(ir::ReshapeOp::create(rewriter, loc, tensorType(result).clone(to), result));
  };
  // [b, s, g, h / g, d] → [b, g, h / g, s, d] is transposed once heads are one dimension.
  auto grouped = source.getDefiningOp<ir::TransposeOp>();
  if (swapped || !isOfGroups(grouped, shape)) grouped = {};
  if (sequenceFirst || grouped) {
    if (grouped) result = grouped.getInput();
    result = reshaped({shape[0], shape[2], shape[1], shape[3]});
    return ir::TransposeOp::create(rewriter, loc, result, kHeadsFirst);
  }
  if (swapped) result = transposeLastTwo(rewriter, loc, source);
  return reshaped(shape);
}

}  // namespace oriel
