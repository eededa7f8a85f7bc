// Sharding rules of the elementwise ops and activations that are linear in operands; the others
// have the trait Pointwise and no more.
#include "ir/oriel/oriel.h"

namespace oriel::ir {
namespace {

ShardingRule linearPointwise(mlir::Operation* op,
                             std::vector<llvm::SmallVector<unsigned, 2>> groups) {
  ShardingRule rule = pointwiseRule(op);
  rule.linear = std::move(groups);
  return rule;
}

}  // namespace

ShardingRule NegOp::getShardingRule() { return linearPointwise(*this, {{0}}); }
ShardingRule StopGradientOp::getShardingRule() { return linearPointwise(*this, {{0}}); }
ShardingRule AddOp::getShardingRule() { return linearPointwise(*this, {{0, 1}}); }
ShardingRule SubOp::getShardingRule() { return linearPointwise(*this, {{0, 1}}); }
ShardingRule MulOp::getShardingRule() { return linearPointwise(*this, {{0}, {1}}); }

ShardingRule DivOp::getShardingRule() {
  // Integer division rounds.
  if (getType().getElementType().isInteger()) return pointwiseRule(*this);
  return linearPointwise(*this, {{0}});
}

ShardingRule SelectOp::getShardingRule() {
  if (getType().getElementType().isInteger(1)) return pointwiseRule(*this);
  return linearPointwise(*this, {{1, 2}});
}

ShardingRule CastOp::getShardingRule() {
  // Towards fewer bits the sum of rounded summands is not the rounded sum.
  auto from = llvm::dyn_cast<mlir::FloatType>(getInput().getType().getElementType());
  auto to = llvm::dyn_cast<mlir::FloatType>(getType().getElementType());
  if (!from || !to || to.getFPMantissaWidth() < from.getFPMantissaWidth()) {
    return pointwiseRule(*this);
  }
  return linearPointwise(*this, {{0}});
}

ShardingRule ActivationGradOp::getShardingRule() { return linearPointwise(*this, {{0}}); }
ShardingRule GatedActivationOp::getShardingRule() { return linearPointwise(*this, {{1}}); }
ShardingRule GatedActivationGradOp::getShardingRule() { return linearPointwise(*this, {{0}}); }

}  // namespace oriel::ir
