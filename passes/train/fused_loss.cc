#include "passes/train/fused_loss.h"

#include "ir/oriel/fused.h"
#include "ir/oriel/inference.h"
#include "ir/oriel/vjp_util.h"

namespace oriel {

using mlir::Operation;
using mlir::Value;

LossValues fuseLoss(LossValues loss) {
  auto entropy = loss.sum.getDefiningOp<ir::CrossEntropyOp>();
  if (!entropy || !entropy.getLogsumexp().use_empty()) return loss;
  llvm::SmallVector<Operation*> replaced = {entropy};
  Value logits = entropy.getLogits();
  const int64_t classes = ir::shapeOf(logits).back();
  while (auto reshape = logits.getDefiningOp<ir::ReshapeOp>()) {
    Value input = reshape.getInput();
    const bool keepsClasses = !ir::shapeOf(input).empty() && ir::shapeOf(input).back() == classes;
    if (!logits.hasOneUse() || !keepsClasses) return loss;
    replaced.push_back(reshape);
    logits = input;
  }
  auto linear = logits.getDefiningOp<ir::LinearOp>();
  if (!linear || !logits.hasOneUse()) return loss;
  replaced.push_back(linear);

  mlir::OpBuilder builder(entropy);
  mlir::Location loc = entropy.getLoc();
  auto rows = ir::tensorType(entropy.getLabels()).clone(ir::shapeOf(linear.getInput()).drop_back());
  Value labels = ir::reshapeTo(builder, loc, entropy.getLabels(), rows);
  // Of the layer: what it is split by is the layer's.
  auto fused = ir::LinearCrossEntropyOp::create(
      builder, loc, linear.getInput(), linear.getWeight(), labels, linear.getBias(),
      linear.getTransposeWeight(), entropy.getIgnoreIndex(), linear.getOrigin());
  if (labels != entropy.getLabels()) {
    llvm::cast<ir::ReshapeOp>(labels.getDefiningOp()).setOrigin(entropy.getOrigin());
  }
  entropy.getLossSum().replaceAllUsesWith(fused.getLossSum());
  entropy.getTokenCount().replaceAllUsesWith(fused.getTokenCount());
  for (Operation* op : replaced) op->erase();
  return {fused.getLossSum(), fused.getTokenCount()};
}

}  // namespace oriel
