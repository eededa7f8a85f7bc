// Sharding rules of normalisations and softmax: rows are independent. A row splits
// in steps (normalization_steps.cc); weights and biases have no factor of it, so that how these lie
// never asks for steps.
#include "ir/oriel/inference.h"
#include "ir/oriel/oriel.h"
#include "ir/oriel/rule_builder.h"

namespace oriel::ir {

ShardingRule LayerNormOp::getShardingRule() {
  RuleBuilder rule(*this);
  Dims rows = rule.parallel(shapeOf(getInput()).drop_back());
  const int row = rule.steps(shapeOf(getInput()).back());
  rule.operand(0, rows + row);
  rule.result(0, rows + row);
  rule.result(1, rows);
  rule.result(2, rows);
  return rule.take();
}

ShardingRule LayerNormGradOp::getShardingRule() {
  RuleBuilder rule(*this);
  Dims rows = rule.sum(shapeOf(getInput()).drop_back());
  const int row = rule.steps(shapeOf(getInput()).back());
  rule.operand(0, rows + row);
  rule.operand(1, rows + row);
  rule.operand(3, rows);
  rule.operand(4, rows);
  rule.result(0, rows + row);
  rule.linearIn({0});
  return rule.take();
}

ShardingRule RmsNormOp::getShardingRule() {
  RuleBuilder rule(*this);
  Dims rows = rule.parallel(shapeOf(getInput()).drop_back());
  const int row = rule.steps(shapeOf(getInput()).back());
  rule.operand(0, rows + row);
  rule.result(0, rows + row);
  rule.result(1, rows);
  return rule.take();
}

ShardingRule RmsNormGradOp::getShardingRule() {
  RuleBuilder rule(*this);
  Dims rows = rule.sum(shapeOf(getInput()).drop_back());
  const int row = rule.steps(shapeOf(getInput()).back());
  rule.operand(0, rows + row);
  rule.operand(1, rows + row);
  rule.operand(3, rows);
  rule.result(0, rows + row);
  rule.linearIn({0});
  return rule.take();
}

namespace {

// Of operands and a result of one shape, along a dimension of which are rows.
RuleBuilder rowsAlong(mlir::Operation* op, int64_t dim) {
  RuleBuilder rule(op);
  Dims dims;
  for (auto [i, size] : llvm::enumerate(shapeOf(op->getResult(0)))) {
    dims.push_back(static_cast<int64_t>(i) == dim ? rule.steps(size) : rule.parallel(size));
  }
  for (unsigned i = 0; i < op->getNumOperands(); ++i) rule.operand(i, dims);
  rule.result(0, dims);
  return rule;
}

}  // namespace

ShardingRule SoftmaxOp::getShardingRule() { return rowsAlong(*this, getDim()).take(); }

ShardingRule SoftmaxGradOp::getShardingRule() {
  RuleBuilder rule = rowsAlong(*this, getDim());
  rule.linearIn({0});
  return rule.take();
}

}  // namespace oriel::ir
