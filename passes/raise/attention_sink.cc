#include "passes/raise/attention_sink.h"

#include "mlir/IR/Matchers.h"

namespace oriel {

using mlir::Value;

namespace {

// Scores and a column of other scores, in front or behind.
struct WithColumn {
  Value scores;
  bool isBehind = false;
  Value column;                       // [.., 1]; none:
  mlir::DenseElementsAttr constants;  // a splat, or in the shape of a column
};

std::optional<WithColumn> matchConcat(ir::ConcatOp op, int64_t last) {
  if (static_cast<int64_t>(op.getDim()) != last || op.getInputs().size() != 2) return std::nullopt;
  const bool isBehind = tensorType(op.getInputs()[1]).getDimSize(last) == 1;
  WithColumn parts{
      op.getInputs()[isBehind ? 0 : 1], isBehind, op.getInputs()[isBehind ? 1 : 0], {}};
  if (tensorType(parts.column).getDimSize(last) != 1) return std::nullopt;
  if (mlir::matchPattern(parts.column, mlir::m_Constant(&parts.constants))) parts.column = {};
  return parts;
}

std::optional<WithColumn> matchPad(ir::PadOp op, int64_t last) {
  auto areZero = [](llvm::ArrayRef<int64_t> counts) {
    return llvm::all_of(counts, [](int64_t count) { return count == 0; });
  };
  const llvm::ArrayRef<int64_t> low = op.getLow(), high = op.getHigh();
  if (!areZero(low.take_front(last)) || !areZero(high.take_front(last)) ||
      !areZero(op.getInterior()) || low[last] + high[last] != 1) {
    return std::nullopt;
  }
  mlir::RankedTensorType type = tensorType(op.getInput());
  auto value = mlir::FloatAttr::get(type.getElementType(), op.getValue());
  return WithColumn{op.getInput(), high[last] == 1, {}, mlir::DenseElementsAttr::get(type, value)};
}

bool isHidden(const llvm::APFloat& number) { return number.convertToDouble() <= kLowestScore; }

// Of so many heads, in a column [b, heads.., s, 1] of as many as there are, or a splat. Nothing if
// they differ between samples or queries, or where one is as low as what masks hide.
mlir::DenseElementsAttr numbersOfHeads(mlir::DenseElementsAttr column, int64_t heads) {
  auto type = mlir::RankedTensorType::get({heads}, column.getElementType());
  if (column.empty()) return {};
  if (column.isSplat()) {
    const auto number = column.getSplatValue<llvm::APFloat>();
    if (isHidden(number)) return {};
    return mlir::DenseElementsAttr::get(type, number);
  }
  const llvm::ArrayRef<int64_t> shape = column.getType().getShape();
  const int64_t queries = shape[shape.size() - 2];
  llvm::SmallVector<llvm::APFloat> numbers;
  for (const auto& [index, number] : llvm::enumerate(column.getValues<llvm::APFloat>())) {
    const auto at = static_cast<int64_t>(index);
    const int64_t head = at / queries % heads;
    if (at < heads * queries && at % queries == 0) numbers.push_back(number);
    if (isHidden(number) || !number.bitwiseIsEqual(numbers[head])) return {};
  }
  return mlir::DenseElementsAttr::get(type, numbers);
}

}  // namespace

std::optional<SunkSoftmax> SunkSoftmax::match(Value probabilities) {
  auto slice = probabilities.getDefiningOp<ir::SliceOp>();
  auto softmax = slice ? slice.getInput().getDefiningOp<ir::SoftmaxOp>() : ir::SoftmaxOp();
  if (!softmax) return std::nullopt;
  const int64_t rank = softmax.getType().getRank(), last = rank - 1;
  if (rank < 4 || rank > 5 || static_cast<int64_t>(softmax.getDim()) != last) return std::nullopt;
  std::optional<WithColumn> all;
  if (auto concat = softmax.getInput().getDefiningOp<ir::ConcatOp>()) {
    all = matchConcat(concat, last);
  } else if (auto pad = softmax.getInput().getDefiningOp<ir::PadOp>()) {
    all = matchPad(pad, last);
  }
  if (!all || slice.getType() != all->scores.getType() ||
      startOfStretch(slice, last) != (all->isBehind ? 0 : 1)) {
    return std::nullopt;
  }
  SunkSoftmax sunk;
  sunk.scores_ = all->scores;
  llvm::append_range(sunk.heads_, shapeOf(all->scores).slice(1, rank - 3));
  if (!all->column) {
    sunk.numbers_ = numbersOfHeads(all->constants, ir::elementCount(sunk.heads_));
    if (!sunk.numbers_) return std::nullopt;
    return sunk;
  }
  sunk.sink_ = all->column;
  while (auto broadcast = sunk.sink_.getDefiningOp<ir::BroadcastOp>()) {
    sunk.sink_ = broadcast.getInput();
  }
  // Aligned with the last dimensions, so that a sample's and a query's are known by their places.
  llvm::SmallVector<int64_t> shape(shapeOf(sunk.sink_));
  shape.insert(shape.begin(), rank - static_cast<int64_t>(shape.size()), 1);
  if (shape.front() != 1 || shape[rank - 2] != 1) return std::nullopt;
  llvm::append_range(sunk.sizes_, llvm::ArrayRef(shape).slice(1, rank - 3));
  return sunk;
}

bool takesWhatIsHidden(Value sink) {
  mlir::DenseElementsAttr constants;
  return !mlir::matchPattern(sink, mlir::m_Constant(&constants)) ||
         llvm::none_of(constants.getValues<llvm::APFloat>(), isHidden);
}

Value SunkSoftmax::make(mlir::PatternRewriter& rewriter, mlir::Location loc) const {
  if (numbers_) return ir::ConstantOp::create(rewriter, loc, numbers_);
  auto reshape = [&](Value value, llvm::ArrayRef<int64_t> shape) -> Value {
    if (shapeOf(value) == shape) return value;
    return ir::ReshapeOp::create(rewriter, loc, tensorType(value).clone(shape), value);
  };
  Value sink = reshape(sink_, sizes_);
  if (sizes_ != heads_) {
    sink = ir::BroadcastOp::create(rewriter, loc, tensorType(sink).clone(heads_), sink);
  }
  return reshape(sink, {ir::elementCount(heads_)});
}

}  // namespace oriel
