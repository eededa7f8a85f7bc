#include "passes/train/fused_loss.h"

#include <algorithm>
#include <optional>

#include "ir/oriel/builders.h"
#include "ir/oriel/fused.h"
#include "ir/oriel/inference.h"

namespace oriel {

using mlir::Operation;
using mlir::RankedTensorType;
using mlir::Value;

namespace {

// Most pieces that evaluation cuts the positions into: each is a few ops more.
constexpr int64_t kMaxPieces = 16;

// What gives the logits of a cross entropy, which nothing else reads.
struct OutputLayer {
  ir::CrossEntropyOp entropy;
  ir::LinearOp linear;
  llvm::SmallVector<Operation*> ops;  // both, and what is between them; users first

  // [n.., positions], of the labels.
  RankedTensorType rows() {
    return ir::tensorType(entropy.getLabels()).clone(ir::shapeOf(linear.getInput()).drop_back());
  }
  void replaceLoss(const LossValues& loss) {
    entropy.getLossSum().replaceAllUsesWith(loss.sum);
    entropy.getTokenCount().replaceAllUsesWith(loss.count);
    for (Operation* op : ops) op->erase();
  }
};

std::optional<OutputLayer> outputLayerOf(LossValues loss) {
  OutputLayer layer;
  layer.entropy = loss.sum.getDefiningOp<ir::CrossEntropyOp>();
  if (!layer.entropy || !layer.entropy.getLogsumexp().use_empty()) return std::nullopt;
  layer.ops = {layer.entropy};
  Value logits = layer.entropy.getLogits();
  const int64_t classes = ir::shapeOf(logits).back();
  while (auto reshape = logits.getDefiningOp<ir::ReshapeOp>()) {
    Value input = reshape.getInput();
    const bool keepsClasses = !ir::shapeOf(input).empty() && ir::shapeOf(input).back() == classes;
    if (!logits.hasOneUse() || !keepsClasses) return std::nullopt;
    layer.ops.push_back(reshape);
    logits = input;
  }
  layer.linear = logits.getDefiningOp<ir::LinearOp>();
  if (!layer.linear || !logits.hasOneUse() || ir::shapeOf(logits).size() < 2) return std::nullopt;
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

}  // namespace

LossValues fuseLoss(LossValues loss) {
  std::optional<OutputLayer> layer = outputLayerOf(loss);
  if (!layer) return loss;
  ir::CrossEntropyOp entropy = layer->entropy;
  ir::LinearOp linear = layer->linear;
  mlir::OpBuilder builder(entropy);
  mlir::Location loc = entropy.getLoc();
  Value labels = ir::reshapeTo(builder, loc, entropy.getLabels(), layer->rows());
  // Of the layer: what it is split by is the layer's.
  auto fused = ir::LinearCrossEntropyOp::create(
      builder, loc, linear.getInput(), linear.getWeight(), labels, linear.getBias(),
      linear.getTransposeWeight(), entropy.getIgnoreIndex(), linear.getOrigin());
  if (labels != entropy.getLabels()) {
    llvm::cast<ir::ReshapeOp>(labels.getDefiningOp()).setOrigin(entropy.getOrigin());
  }
  LossValues made{fused.getLossSum(), fused.getTokenCount()};
  layer->replaceLoss(made);
  return made;
}

LossAndPredictions evaluateInPieces(LossValues loss, int64_t ranks) {
  std::optional<OutputLayer> layer = outputLayerOf(loss);
  ir::CrossEntropyOp entropy = layer->entropy;
  ir::LinearOp linear = layer->linear;
  mlir::OpBuilder builder(entropy);
  mlir::Location loc = entropy.getLoc();
  const RankedTensorType rows = layer->rows();
  const int64_t dim = rows.getRank() - 1, positions = rows.getShape().back();
  const int64_t divided = positions % ranks == 0 ? positions / ranks : positions;
  int64_t count = std::clamp<int64_t>(divided, 1, kMaxPieces);
  while (count > 1 && divided % count != 0) --count;
  Pieces inputs(builder, linear.getInput(), dim, count);
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
  layer->replaceLoss(sums);
  return made;
}

}  // namespace oriel
