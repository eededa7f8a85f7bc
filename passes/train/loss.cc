#include "passes/train/loss.h"

#include "ir/interfaces/tensor_type.h"
#include "ir/oriel/builders.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace oriel {
namespace {

// `value` moved by one along the last dimension: to the left, `fill` comes in at the end; to
// the right, at the front.
Value shiftLast(OpBuilder& builder, Location loc, Value value, bool left, int64_t fill) {
  RankedTensorType type = ir::tensorType(value);
  int64_t last = type.getRank() - 1, size = type.getDimSize(last);
  SmallVector<int64_t> columnShape(type.getShape());
  columnShape[last] = 1;
  auto columnType = RankedTensorType::get(columnShape, type.getElementType());
  Value column = ir::ConstantOp::create(
      builder, loc,
      DenseElementsAttr::get(columnType, builder.getIntegerAttr(type.getElementType(), fill)));
  Value kept = ir::sliceDim(builder, loc, value, last, left ? 1 : 0, size - 1);
  SmallVector<Value> parts =
      left ? SmallVector<Value>{kept, column} : SmallVector<Value>{column, kept};
  return ir::ConcatOp::create(builder, loc, parts, last);
}

// The labels, or a runtime error if one is beyond so many classes: a lookup in their range refuses
// it. The ignored label passes, and other negative ones, which the cross entropy refuses.
Value checkLabels(OpBuilder& builder, Location loc, Value labels, int64_t classes,
                  int64_t ignoreIndex) {
  RankedTensorType type = ir::tensorType(labels);
  auto scalar = [&](int64_t value) -> Value {
    auto attribute = builder.getIntegerAttr(type.getElementType(), value);
    return ir::ConstantOp::create(
        builder, loc, DenseElementsAttr::get(type.clone(ArrayRef<int64_t>{}), attribute));
  };
  Value zero = scalar(0);
  Value isClass = ir::GreaterEqualOp::create(builder, loc, labels, zero);
  // One that the labels' type can't hold is none of them.
  if (type.getElementType().isInteger(64) || ignoreIndex == static_cast<int32_t>(ignoreIndex)) {
    Value ignored = ir::EqualOp::create(builder, loc, labels, scalar(ignoreIndex));
    isClass = ir::AndOp::create(builder, loc, ir::NotOp::create(builder, loc, ignored), isClass);
  }
  Value index = ir::SelectOp::create(builder, loc, isClass, labels, zero);
  Value range = ir::IotaOp::create(builder, loc, type.clone(ArrayRef<int64_t>{classes}), 0);
  Value known = ir::GatherOp::create(builder, loc, range, index, 0, /*first=*/Value());
  return ir::SelectOp::create(builder, loc, isClass, known, labels);
}

// Whether the elements are -inf from this index of the last dimension on.
bool isMinusInfinityFrom(Value values, int64_t index) {
  auto select = values.getDefiningOp<ir::SelectOp>();
  if (!select) return false;
  auto beyond = select.getCondition().getDefiningOp<ir::GreaterEqualOp>();
  APInt first;
  DenseElementsAttr value;
  return beyond && beyond.getLhs().getDefiningOp<ir::IotaOp>() &&
         ir::rankOf(beyond.getLhs()) == 1 && beyond.getType().getRank() == 1 &&
         beyond.getType().getDimSize(0) == ir::shapeOf(values).back() &&
         matchPattern(beyond.getRhs(), m_ConstantInt(&first)) && first.sle(index) &&
         matchPattern(select.getOnTrue(), m_Constant(&value)) && value.isSplat() &&
         value.getSplatValue<APFloat>().isInfinity() && value.getSplatValue<APFloat>().isNegative();
}

// What was only widened for the model's output.
Value withoutWidening(Value logits) {
  auto widening = logits.getDefiningOp<ir::CastOp>();
  bool isWidened =
      widening && ir::typeBytes(widening.getInput().getType()) < ir::typeBytes(logits.getType());
  return isWidened ? widening.getInput() : logits;
}

}  // namespace

Value findWideLogits(Value logits) {
  auto slice = logits.getDefiningOp<ir::SliceOp>();
  if (!slice) return {};
  Value wide = slice.getInput();
  ArrayRef<int64_t> shape = ir::shapeOf(wide);
  bool cutsClasses = !shape.empty() && slice.getLimits().drop_back() == shape.drop_back() &&
                     llvm::all_of(slice.getStarts(), [](int64_t start) { return start == 0; }) &&
                     llvm::all_of(slice.getStrides(), [](int64_t stride) { return stride == 1; });
  if (!cutsClasses) return {};
  if (isMinusInfinityFrom(wide, slice.getLimits().back())) return wide;
  Value value = wide;
  while (llvm::isa_and_nonnull<ir::ReshapeOp, ir::SliceOp>(value.getDefiningOp())) {
    value = value.getDefiningOp()->getOperand(0);
    if (ir::rankOf(value) == 0 || ir::shapeOf(value).back() != shape.back()) return {};
  }
  auto linear = value.getDefiningOp<ir::LinearOp>();
  if (!linear || !linear.getBias()) return {};
  return isMinusInfinityFrom(linear.getBias(), slice.getLimits().back()) ? wide : Value();
}

LogicalResult checkLossTypes(Location loc, const Recipe::Loss& loss, RankedTensorType logits,
                             RankedTensorType labels) {
  if (!logits.getElementType().isF32()) {
    return emitError(loc, "the logits '")
           << loss.output << "' must be f32, not " << logits
           << "; export the model in f32 (in PyTorch, module.float())";
  }
  if (logits.getRank() != 2 && logits.getRank() != 3) {
    return emitError(loc, "the logits '")
           << loss.output << "' must have rank 2 or 3, not type " << logits;
  }
  if (logits.getShape().back() == 0) {
    return emitError(loc, "the logits '")
           << loss.output << "' of type " << logits << " have no classes";
  }
  bool fits = logits.getRank() == 2 ? ir::elementCount(labels.getShape()) == logits.getDimSize(0)
                                    : labels.getShape() == logits.getShape().drop_back();
  if (!fits) {
    return emitError(loc, "the labels '")
           << loss.labels << "' have type " << labels << ", which does not fit the logits '"
           << loss.output << "' of type " << logits
           << ": change their shape in `inputs` of the recipe, or, where the model is of a fixed "
              "batch, `batch.micro` to that";
  }
  if (loss.shift && (labels.getRank() < 2 || labels.getShape().back() < 2)) {
    return emitError(loc, "the labels '")
           << loss.labels << "' of type " << labels
           << " can't be shifted: that takes a dimension of samples and one of two or more "
              "positions; set loss.shift to false";
  }
  if (loss.ignoreIndex != static_cast<int32_t>(loss.ignoreIndex) &&
      labels.getElementType().isInteger(32)) {
    return emitError(loc, "loss.ignore_index ")
           << loss.ignoreIndex << " does not fit labels of type " << labels;
  }
  return success();
}

LossValues buildCrossEntropy(OpBuilder& builder, Location loc, const Recipe& recipe, Value logits,
                             Value labels) {
  const Recipe::Loss& loss = recipe.loss;
  if (loss.shift) labels = shiftLast(builder, loc, labels, /*left=*/true, loss.ignoreIndex);
  auto rows = RankedTensorType::get(ir::shapeOf(logits).drop_back(), ir::elementOf(labels));
  labels = ir::reshapeTo(builder, loc, labels, rows);
  auto op = ir::CrossEntropyOp::create(builder, loc, logits, labels, loss.ignoreIndex);
  // Where the lookup of a label fails, this says of what.
  Location ofLabels = NameLoc::get(builder.getStringAttr("loss, label of '" + loss.labels + "'"));
  readLogitsAsMade(op, recipe.precision, ofLabels);
  return {op.getLossSum(), op.getTokenCount()};
}

template <typename Loss>
void readLogitsAsMade(Loss loss, const Recipe::Precision& precision, Location ofLabels) {
  if (precision.isNarrow(loss->getName().stripDialect().str()).value_or(true)) {
    loss.getLogitsMutable().assign(withoutWidening(loss.getLogits()));
  }
  Value wide = findWideLogits(loss.getLogits());
  if (!wide) return;
  OpBuilder builder(loss);
  loss.getLabelsMutable().assign(checkLabels(builder, ofLabels, loss.getLabels(),
                                             ir::shapeOf(loss.getLogits()).back(),
                                             loss.getIgnoreIndex()));
  loss.getLogitsMutable().assign(wide);
}

template void readLogitsAsMade(ir::CrossEntropyOp, const Recipe::Precision&, Location);
template void readLogitsAsMade(ir::TokenLossesOp, const Recipe::Precision&, Location);

LogicalResult checkSummand(Location loc, const Recipe::Loss& loss, RankedTensorType output) {
  if (output.getElementType().isF32()) return success();
  return emitError(loc, "the output '")
         << loss.output << "', whose sum is the loss, must be f32, not " << output;
}

LossValues buildSum(OpBuilder& builder, Location loc, Value output) {
  auto scalar = RankedTensorType::get({}, builder.getF32Type());
  Value one = ir::ConstantOp::create(builder, loc,
                                     DenseElementsAttr::get(scalar, builder.getF32FloatAttr(1)));
  if (ir::rankOf(output) == 0) return {output, one};
  auto dims = llvm::to_vector(llvm::seq<int64_t>(0, ir::rankOf(output)));
  Value sum = ir::ReduceSumOp::create(builder, loc, scalar, output, dims, /*keep_dims=*/false);
  return {sum, one};
}

Value buildArgmax(OpBuilder& builder, Location loc, Value logits) {
  logits = withoutWidening(logits);
  if (Value wide = findWideLogits(logits)) logits = wide;
  return ir::ArgmaxOp::create(builder, loc, logits, ir::rankOf(logits) - 1);
}

Value buildPredictions(OpBuilder& builder, Location loc, const Recipe::Loss& loss, Value best,
                       RankedTensorType labels) {
  best = ir::reshapeTo(builder, loc, best,
                       RankedTensorType::get(labels.getShape(), ir::elementOf(best)));
  return loss.shift ? shiftLast(builder, loc, best, /*left=*/false, 0) : best;
}

}  // namespace oriel
