// Sharding rules of the loss and of the image merge. Optimizer steps are pointwise.
#include "ir/oriel/builders.h"
#include "ir/oriel/fused.h"
#include "ir/oriel/inference.h"
#include "ir/oriel/oriel.h"
#include "ir/oriel/rule_builder.h"

namespace oriel::ir {

using mlir::Value;

// By class it takes steps: the maximum of all classes is needed before the sum.
ShardingRule CrossEntropyOp::getShardingRule() {
  RuleBuilder rule(*this);
  Dims rows = rule.sum(shapeOf(getLabels()));
  int classes = rule.steps(shapeOf(getLogits()).back());
  rule.operand(0, rows + classes);
  rule.operand(1, rows);
  rule.result(2, rows);
  return rule.take();
}

ShardingRule TokenLossesOp::getShardingRule() {
  RuleBuilder rule(*this);
  Dims rows = rule.parallel(shapeOf(getLabels()));
  int classes = rule.steps(shapeOf(getLogits()).back());
  rule.operand(0, rows + classes);
  rule.operand(1, rows);
  rule.result(0, rows);
  rule.result(1, rows);
  return rule.take();
}

namespace {

// Of each row; what has the logits' size is read, and not made.
struct RowStatistics {
  Value logsumexp;   // max + log Σ exp(logits - max)
  Value labelLogit;  // 0 for an ignored label
};

template <typename Op>
RowStatistics statisticsOfRows(mlir::OpBuilder& builder, Op op) {
  mlir::Location loc = op.getLoc();
  int64_t origin = op.getOrigin(), rank = shapeOf(op.getLabels()).size();
  // The rows' numbers, in the type that they are summed in.
  mlir::RankedTensorType rowType = op.getLogsumexp().getType();
  auto wide = [&](Value value) -> Value {
    if (value.getType() == rowType) return value;
    return CastOp::create(builder, loc, rowType, value, origin);
  };
  Value max =
      wide(ReduceMaxOp::create(builder, loc, op.getLogits(), {rank}, /*keep_dims=*/false, origin));
  Value sum = SumExpOp::create(builder, loc, op.getLogits(), max, origin);
  Value logsumexp =
      AddOp::create(builder, loc, max, LogOp::create(builder, loc, sum, origin), origin);
  Value logit =
      wide(LabelLogitsOp::create(builder, loc, op.getLogits(), op.getLabels(), op.getIgnoreIndex(),
                                 /*first=*/Value(), /*classes=*/0, origin));
  return {logsumexp, logit};
}

}  // namespace

llvm::SmallVector<Value> CrossEntropyOp::decompose(mlir::OpBuilder& builder) {
  RowStatistics rows = statisticsOfRows(builder, *this);
  return lossOfRows(builder, getLoc(), rows.logsumexp, rows.labelLogit, getLabels(),
                    getIgnoreIndex(), getOrigin());
}

llvm::SmallVector<Value> TokenLossesOp::decompose(mlir::OpBuilder& builder) {
  RowStatistics rows = statisticsOfRows(builder, *this);
  return {rowLosses(builder, getLoc(), rows.logsumexp, rows.labelLogit, getLabels(),
                    getIgnoreIndex(), getOrigin()),
          rows.logsumexp};
}

ShardingRule CrossEntropyGradOp::getShardingRule() {
  RuleBuilder rule(*this);
  Dims rows = rule.parallel(shapeOf(getLabels()));
  if (!shapeOf(getCotangent()).empty()) rule.operand(0, rows);
  int classes = getFirst() ? kWhole : rule.parallel(shapeOf(getLogits()).back());
  rule.operand(1, rows + classes);
  rule.operand(2, rows);
  rule.operand(3, rows);
  rule.result(0, rows + classes);
  rule.linearIn({0});
  return rule.take();
}

mlir::Operation* CrossEntropyGradOp::buildLocal(mlir::OpBuilder& builder, mlir::ValueRange operands,
                                                const LocalPieces& pieces) {
  ShardingRule rule = getShardingRule();
  return cloneLocalAt(*this, builder, operands, rule, pieces, rule.operands[1].back(), "classes");
}

ShardingRule SumExpOp::getShardingRule() {
  RuleBuilder rule(*this);
  Dims rows = rule.parallel(shapeOf(getShift()));
  rule.operand(0, rows + rule.sum(shapeOf(getInput()).back()));
  rule.operand(1, rows);
  rule.result(0, rows);
  return rule.take();
}

// The rank with the label's piece gives the logit, the others 0.
ShardingRule LabelLogitsOp::getShardingRule() {
  RuleBuilder rule(*this);
  Dims rows = rule.parallel(shapeOf(getLabels()));
  int classes = getFirst() ? kWhole : rule.sum(shapeOf(getLogits()).back());
  rule.operand(0, rows + classes);
  rule.operand(1, rows);
  rule.result(0, rows);
  rule.linearIn({0});
  return rule.take();
}

mlir::Operation* LabelLogitsOp::buildLocal(mlir::OpBuilder& builder, mlir::ValueRange operands,
                                           const LocalPieces& pieces) {
  ShardingRule rule = getShardingRule();
  return cloneLocalAt(*this, builder, operands, rule, pieces, rule.operands[0].back(), "classes");
}

// Several operands have no factor in common: a rank would count again what another has whole.
ShardingRule SumSquaresOp::getShardingRule() {
  RuleBuilder rule(*this);
  bool isOne = getInputs().size() == 1;
  for (auto [i, input] : llvm::enumerate(getInputs())) {
    rule.operand(i, isOne ? rule.sum(shapeOf(input)) : rule.steps(shapeOf(input)));
  }
  return rule.take();
}

llvm::SmallVector<Value> SumSquaresOp::decompose(mlir::OpBuilder& builder) {
  if (getInputs().size() < 2) return {};
  // All squares before the first sum: where they have to be completed over ranks, that is one
  // all-reduce.
  llvm::SmallVector<Value> squares;
  for (Value input : getInputs()) {
    squares.push_back(SumSquaresOp::create(builder, getLoc(), getType(), input, getOrigin()));
  }
  Value total = squares.front();
  for (Value own : llvm::drop_begin(squares)) {
    total = AddOp::create(builder, getLoc(), total, own, getOrigin());
  }
  return {total};
}

ShardingRule MergeFeaturesOp::getShardingRule() {
  RuleBuilder rule(*this);
  int sample = rule.parallel(shapeOf(getInput())[0]);
  int width = rule.parallel(shapeOf(getInput())[2]);
  rule.operand(0, {sample, kWhole, width});
  rule.operand(1, {sample, kWhole});
  rule.operand(2, {sample, kWhole, width});
  rule.result(0, {sample, kWhole, width});
  rule.linearIn({0, 2});
  return rule.take();
}

ShardingRule CheckImageSlotsOp::getShardingRule() {
  RuleBuilder rule(*this);
  int sample = rule.parallel(shapeOf(getMask())[0]);
  rule.operand(0, {sample, kWhole});
  rule.operand(1, {sample});
  rule.result(0, {sample, kWhole});
  return rule.take();
}

ShardingRule MergeFeaturesGradOp::getShardingRule() {
  RuleBuilder rule(*this);
  int sample = rule.parallel(shapeOf(getCotangent())[0]);
  int width = rule.parallel(shapeOf(getCotangent())[2]);
  rule.operand(0, {sample, kWhole, width});
  rule.operand(1, {sample, kWhole});
  rule.result(0, {sample, kWhole, width});
  rule.result(1, {sample, kWhole, width});
  rule.linearIn({0});
  return rule.take();
}

}  // namespace oriel::ir
