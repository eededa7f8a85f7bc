// Sharding rules of experts' layers.
#include "ir/oriel/inference.h"
#include "ir/oriel/oriel.h"
#include "ir/oriel/rule_builder.h"

namespace oriel::ir {

namespace {

// Those of the rows and of the choices; an input has the latter only where it has a row for each.
Dims inputRows(mlir::Value input, mlir::Value choice, const Dims& choices) {
  Dims rows = choices;
  if (shapeOf(input).size() == shapeOf(choice).size()) rows.pop_back();
  return rows;
}

Dims weightDims(int experts, int depth, int columns, bool transposed) {
  return transposed ? Dims{experts, columns, depth} : Dims{experts, depth, columns};
}

}  // namespace

// A piece of the experts gives zeros for the others' choices. A piece is not cut again.
ShardingRule ExpertLinearOp::getShardingRule() {
  RuleBuilder rule(*this);
  llvm::ArrayRef<int64_t> weight = shapeOf(getWeight());
  int experts = getFirst() ? kWhole : rule.sum(weight[0]);
  Dims choices = rule.parallel(shapeOf(getChoice()));
  int k = rule.sum(shapeOf(getInput()).back());
  int n = rule.parallel(getType().getShape().back());
  rule.operand(0, inputRows(getInput(), getChoice(), choices) + k);
  rule.operand(1, weightDims(experts, k, n, getTransposeWeight()));
  rule.operand(2, choices);
  rule.result(0, choices + n);
  rule.linearIn({0});
  rule.linearIn({1});
  return rule.take();
}

mlir::Operation* ExpertLinearOp::buildLocal(mlir::OpBuilder& builder, mlir::ValueRange operands,
                                            const LocalPieces& pieces) {
  ShardingRule rule = getShardingRule();
  return cloneLocalAt(*this, builder, operands, rule, pieces, rule.operands[1][0], "experts");
}

ShardingRule ExpertLinearWeightGradOp::getShardingRule() {
  RuleBuilder rule(*this);
  int experts = getFirst() ? kWhole : rule.parallel(getType().getShape()[0]);
  Dims choices = rule.sum(shapeOf(getChoice()));
  int k = rule.parallel(shapeOf(getInput()).back());
  int n = rule.parallel(shapeOf(getCotangent()).back());
  rule.operand(0, inputRows(getInput(), getChoice(), choices) + k);
  rule.operand(1, choices + n);
  rule.operand(2, choices);
  rule.result(0, weightDims(experts, k, n, getTransposeWeight()));
  rule.linearIn({0});
  rule.linearIn({1});
  return rule.take();
}

mlir::Operation* ExpertLinearWeightGradOp::buildLocal(mlir::OpBuilder& builder,
                                                      mlir::ValueRange operands,
                                                      const LocalPieces& pieces) {
  ShardingRule rule = getShardingRule();
  return cloneLocalAt(*this, builder, operands, rule, pieces, rule.results[0][0], "experts");
}

}  // namespace oriel::ir
