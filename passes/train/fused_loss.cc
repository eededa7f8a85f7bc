#include "passes/train/fused_loss.h"

#include <algorithm>
#include <optional>

#include "ir/oriel/builders.h"
#include "ir/oriel/fused.h"
#include "ir/oriel/inference.h"
#include "mlir/IR/Matchers.h"

namespace oriel {

using mlir::Operation;
using mlir::RankedTensorType;
using mlir::Value;

namespace {

// Most pieces that evaluation cuts the positions into: each is a few ops more.
constexpr int64_t kMaxPieces = 16;

bool isOneNumber(Value value) {
  mlir::Attribute constant;
  return ir::tensorType(value).getNumElements() == 1 &&
         matchPattern(value, mlir::m_Constant(&constant));
}

// Of an op that multiplies a value with one number, or divides it by that: the value's place.
std::optional<int> scaledOperand(Operation* op) {
  if (!llvm::isa<ir::MulOp, ir::DivOp>(op)) return std::nullopt;
  const int last = llvm::isa<ir::MulOp>(op) ? 1 : 0;
  for (int place = 0; place <= last; ++place) {
    const bool isOfIts = op->getOperand(place).getType() == op->getResult(0).getType();
    if (isOfIts && isOneNumber(op->getOperand(1 - place))) return place;
  }
  return std::nullopt;
}

// The value multiplied or divided as the op does.
Value scaleAsBy(mlir::OpBuilder& builder, Operation* op, Value value) {
  Operation* made = builder.clone(*op);
  made->setOperand(*scaledOperand(op), value);
  made->getResult(0).setType(value.getType());
  return made->getResult(0);
}

// Whether it takes rows with all their columns.
bool isOfRows(ir::SliceOp slice) {
  return slice.getType().getRank() > 1 &&
         slice.getType().getShape().back() == ir::shapeOf(slice.getInput()).back();
}

// Whether only a loss reads the op, behind reshapes and scales.
bool isForLoss(Operation* op) {
  while (op->hasOneUse() && (llvm::isa<ir::SliceOp, ir::ReshapeOp>(op) || scaledOperand(op))) {
    op = *op->user_begin();
  }
  return llvm::isa<ir::CrossEntropyOp, ir::TokenLossesOp>(op);
}

// Whether all that reads the logits is slices of their rows, each for one loss, and these are no
// more rows than there are: so the layer may be computed for each slice.
bool isReadInSlices(Value logits) {
  int64_t rows = 0;
  for (Operation* user : logits.getUsers()) {
    auto slice = llvm::dyn_cast<ir::SliceOp>(user);
    if (!slice || !isOfRows(slice) || !isForLoss(slice)) return false;
    rows += ir::elementCount(slice.getType().getShape().drop_back());
  }
  return rows <= ir::elementCount(ir::shapeOf(logits).drop_back());
}

// What gives the logits of a loss, which nothing else reads.
template <typename Loss>
struct OutputLayer {
  Loss loss;
  ir::LinearOp linear;
  ir::SliceOp slice;                  // of its rows; null: all
  llvm::SmallVector<Operation*> ops;  // all, and what is between them; users first

  // What the layer takes for these rows, scaled as the logits are.
  Value makeInput(mlir::OpBuilder& builder) {
    Value value = linear.getInput();
    if (slice) {
      auto rowsOfInput = llvm::cast<ir::SliceOp>(builder.clone(*slice));
      const int64_t width = ir::shapeOf(value).back();
      llvm::SmallVector<int64_t> limits(slice.getLimits()), shape(slice.getType().getShape());
      limits.back() = shape.back() = width;
      rowsOfInput.setLimits(limits);
      rowsOfInput.getInputMutable().assign(value);
      rowsOfInput.getResult().setType(ir::tensorType(value).clone(shape));
      value = rowsOfInput.getResult();
    }
    for (Operation* op : llvm::reverse(ops)) {
      if (scaledOperand(op)) value = scaleAsBy(builder, op, value);
    }
    return value;
  }

  // [n.., positions], of the labels.
  RankedTensorType rows() {
    Value ofRows = slice ? slice.getResult() : linear.getResult();
    return ir::tensorType(loss.getLabels()).clone(ir::shapeOf(ofRows).drop_back());
  }
  // The layer may have other slices.
  void erase() {
    for (Operation* op : ops) {
      if (op->use_empty()) op->erase();
    }
  }
};

void replaceLoss(OutputLayer<ir::CrossEntropyOp>& layer, const LossValues& made) {
  layer.loss.getLossSum().replaceAllUsesWith(made.sum);
  layer.loss.getTokenCount().replaceAllUsesWith(made.count);
  layer.erase();
}

template <typename Loss>
std::optional<OutputLayer<Loss>> outputLayerOf(Loss loss) {
  if (!loss || !loss.getLogsumexp().use_empty()) return std::nullopt;
  OutputLayer<Loss> layer{loss, {}, {}, {loss}};
  Value logits = loss.getLogits();
  const int64_t classes = ir::shapeOf(logits).back();
  const auto isOnlyForLosses = [&] {
    const bool isSliced = layer.slice && logits == layer.slice.getInput();
    return isSliced ? isReadInSlices(logits) : logits.hasOneUse();
  };
  while (Operation* op = logits.getDefiningOp()) {
    const std::optional<int> scaled = scaledOperand(op);
    // Behind a slice of rows, which the layer's input has, too.
    const bool moves = !layer.slice && llvm::isa<ir::ReshapeOp, ir::SliceOp>(op);
    if (!scaled && !moves) break;
    Value input = op->getOperand(scaled.value_or(0));
    const bool keepsClasses = !ir::shapeOf(input).empty() && ir::shapeOf(input).back() == classes;
    if (!isOnlyForLosses() || !keepsClasses) return std::nullopt;
    layer.ops.push_back(op);
    if (!layer.slice) layer.slice = llvm::dyn_cast<ir::SliceOp>(op);
    logits = input;
  }
  layer.linear = logits.getDefiningOp<ir::LinearOp>();
  if (!layer.linear || !isOnlyForLosses() || ir::shapeOf(logits).size() < 2) return std::nullopt;
  // A bias would have to be scaled, too; and the input keeps its dimensions.
  const auto fits = [&](Operation* op) {
    const std::optional<int> scaled = scaledOperand(op);
    return !scaled || (!layer.linear.getBias() && ir::rankOf(op->getOperand(1 - *scaled)) <=
                                                      ir::rankOf(layer.linear.getInput()));
  };
  if (!llvm::all_of(layer.ops, fits)) return std::nullopt;
  layer.ops.push_back(layer.linear);
  return layer;
}

// Cuts a dimension into `count` pieces, each of every `count`-th element: so are pieces of a piece
// that a rank has.
class Pieces {
 public:
  Pieces(mlir::OpBuilder& builder, Value value, int64_t dim, int64_t count)
      : builder_(builder), loc_(value.getLoc()), dim_(dim) {
    llvm::SmallVector<int64_t> shape(ir::shapeOf(value));
    shape[dim] /= count;
    of_ = ir::tensorType(value).clone(shape);
    shape.insert(shape.begin() + dim + 1, count);
    cut_ = ir::reshapeTo(builder, loc_, value, ir::tensorType(value).clone(shape));
  }

  Value operator[](int64_t index) {
    return ir::reshapeTo(builder_, loc_, ir::sliceDim(builder_, loc_, cut_, dim_ + 1, index, 1),
                         of_);
  }

 private:
  mlir::OpBuilder& builder_;
  mlir::Location loc_;
  int64_t dim_;
  RankedTensorType of_;
  Value cut_;
};

// The other way.
Value joinPieces(mlir::OpBuilder& builder, mlir::Location loc, llvm::ArrayRef<Value> pieces,
                 RankedTensorType whole) {
  llvm::SmallVector<Value> columns;
  for (Value piece : pieces) {
    llvm::SmallVector<int64_t> shape(ir::shapeOf(piece));
    shape.push_back(1);
    columns.push_back(ir::reshapeTo(builder, loc, piece, ir::tensorType(piece).clone(shape)));
  }
  Value joined = columns.front();
  if (columns.size() > 1) {
    joined = ir::ConcatOp::create(builder, loc, columns, ir::shapeOf(joined).size() - 1);
  }
  return ir::reshapeTo(builder, loc, joined, whole);
}

// The loss of the layer's input.
template <typename Fused, typename Loss>
Fused fusedOf(mlir::OpBuilder& builder, OutputLayer<Loss>& layer) {
  Loss loss = layer.loss;
  ir::LinearOp linear = layer.linear;
  Value labels = ir::reshapeTo(builder, loss.getLoc(), loss.getLabels(), layer.rows());
  if (labels != loss.getLabels()) {
    llvm::cast<ir::ReshapeOp>(labels.getDefiningOp()).setOrigin(loss.getOrigin());
  }
  // Of the layer: what it is split by is the layer's.
  return Fused::create(builder, loss.getLoc(), layer.makeInput(builder), linear.getWeight(), labels,
                       linear.getBias(), linear.getTransposeWeight(), loss.getIgnoreIndex(),
                       linear.getOrigin());
}

}  // namespace

LossValues fuseLoss(LossValues loss) {
  auto layer = outputLayerOf(loss.sum.getDefiningOp<ir::CrossEntropyOp>());
  if (!layer) return loss;
  mlir::OpBuilder builder(layer->loss);
  auto fused = fusedOf<ir::LinearCrossEntropyOp>(builder, *layer);
  LossValues made{fused.getLossSum(), fused.getTokenCount()};
  replaceLoss(*layer, made);
  return made;
}

bool fuseTokenLosses(ir::TokenLossesOp losses) {
  auto layer = outputLayerOf(losses);
  if (!layer) return false;
  mlir::OpBuilder builder(losses);
  auto fused = fusedOf<ir::LinearTokenLossesOp>(builder, *layer);
  auto type = ir::tensorType(losses.getLosses());
  Value made = ir::reshapeTo(builder, losses.getLoc(), fused.getLosses(), type);
  if (made != fused.getLosses()) {
    llvm::cast<ir::ReshapeOp>(made.getDefiningOp()).setOrigin(losses.getOrigin());
  }
  losses.getLosses().replaceAllUsesWith(made);
  layer->erase();
  return true;
}

LossAndPredictions evaluateInPieces(LossValues loss, int64_t ranks) {
  // There, as in the forward, whose ops the evaluation's are.
  auto layer = outputLayerOf(loss.sum.getDefiningOp<ir::CrossEntropyOp>());
  ir::CrossEntropyOp entropy = layer->loss;
  ir::LinearOp linear = layer->linear;
  mlir::OpBuilder builder(entropy);
  mlir::Location loc = entropy.getLoc();
  const RankedTensorType rows = layer->rows();
  const int64_t dim = rows.getRank() - 1, positions = rows.getShape().back();
  const int64_t divided = positions % ranks == 0 ? positions / ranks : positions;
  int64_t count = std::clamp<int64_t>(divided, 1, kMaxPieces);
  while (count > 1 && divided % count != 0) --count;
  Pieces inputs(builder, layer->makeInput(builder), dim, count);
  Pieces labels(builder, ir::reshapeTo(builder, loc, entropy.getLabels(), rows), dim, count);

  LossValues sums{};
  llvm::SmallVector<Value> predictions;
  for (int64_t i = 0; i < count; ++i) {
    Value logits =
        ir::LinearOp::create(builder, linear.getLoc(), inputs[i], linear.getWeight(),
                             linear.getBias(), linear.getTransposeWeight(), linear.getOrigin());
    auto piece = ir::CrossEntropyOp::create(builder, loc, logits, labels[i],
                                            entropy.getIgnoreIndex(), entropy.getOrigin());
    predictions.push_back(ir::ArgmaxOp::create(builder, loc, logits, dim + 1));
    if (i == 0) {
      sums = {piece.getLossSum(), piece.getTokenCount()};
    } else {
      sums = {ir::AddOp::create(builder, loc, sums.sum, piece.getLossSum()),
              ir::AddOp::create(builder, loc, sums.count, piece.getTokenCount())};
    }
  }
  auto indices = RankedTensorType::get(rows.getShape(), ir::elementOf(predictions.front()));
  LossAndPredictions made{sums, joinPieces(builder, loc, predictions, indices)};
  replaceLoss(*layer, sums);
  return made;
}

}  // namespace oriel
