// Sharding rules of the loss and of the image merge. Optimizer steps are pointwise.
#include "ir/oriel/inference.h"
#include "ir/oriel/oriel.h"
#include "ir/oriel/rule_builder.h"

namespace oriel::ir {

// The vocabulary stays whole: its maximum is needed before the sum.
ShardingRule CrossEntropyOp::getShardingRule() {
  RuleBuilder rule(*this);
  Dims rows = rule.sum(shapeOf(getLabels()));
  rule.operand(0, rows + kWhole);
  rule.operand(1, rows);
  rule.result(2, rows);
  return rule.take();
}

ShardingRule CrossEntropyGradOp::getShardingRule() {
  RuleBuilder rule(*this);
  Dims rows = rule.parallel(shapeOf(getLabels()));
  rule.operand(1, rows + kWhole);
  rule.operand(2, rows);
  rule.operand(3, rows);
  rule.result(0, rows + kWhole);
  rule.linearIn({0});
  return rule.take();
}

// Several operands have no factor in common: a rank would count again what another has whole.
ShardingRule SumSquaresOp::getShardingRule() {
  if (getInputs().size() != 1) return wholeRule(*this);
  RuleBuilder rule(*this);
  rule.operand(0, rule.sum(shapeOf(getInputs().front())));
  return rule.take();
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
