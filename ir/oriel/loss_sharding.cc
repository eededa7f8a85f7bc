// Sharding rules of the loss of a linear layer's result. That of logits is in training_sharding.cc.
#include <numeric>
#include <utility>

#include "ir/oriel/builders.h"
#include "ir/oriel/fused.h"
#include "ir/oriel/inference.h"
#include "ir/oriel/rule_builder.h"

namespace oriel::ir {

using mlir::Value;

namespace {

Dims ofWeight(int classes, bool transposed) {
  return transposed ? Dims{classes, kWhole} : Dims{kWhole, classes};
}

int64_t classesOf(Value weight, bool transposed) { return shapeOf(weight)[transposed ? 0 : 1]; }

// Into how many blocks classes are cut, so that ranks can have some of them: all numbers of ranks
// that are usual and divide the classes divide it, and it is small beside a large vocabulary.
int64_t blocksOf(int64_t classes) { return std::gcd(classes, int64_t{960}); }

// Whether a label is the ignored one.
Value isIgnored(mlir::OpBuilder& builder, mlir::Location loc, Value labels, int64_t ignoreIndex,
                int64_t origin) {
  mlir::RankedTensorType i64 = tensorType(labels).clone(builder.getI64Type());
  if (labels.getType() != i64) labels = CastOp::create(builder, loc, i64, labels, origin);
  auto index = mlir::DenseElementsAttr::get(i64.clone(llvm::ArrayRef<int64_t>{}), ignoreIndex);
  return EqualOp::create(builder, loc, labels, ConstantOp::create(builder, loc, index, origin),
                         origin);
}

// 0 of ignored ones.
Value lossOrZero(mlir::OpBuilder& builder, mlir::Location loc, Value logsumexp, Value labelLogit,
                 Value ignored, int64_t origin) {
  Value loss = SubOp::create(builder, loc, logsumexp, labelLogit, origin);
  return SelectOp::create(builder, loc, ignored, scalarConstant(builder, loc, 0, loss, origin),
                          loss, origin);
}

}  // namespace

Value rowLosses(mlir::OpBuilder& builder, mlir::Location loc, Value logsumexp, Value labelLogit,
                Value labels, int64_t ignoreIndex, int64_t origin) {
  Value ignored = isIgnored(builder, loc, labels, ignoreIndex, origin);
  return lossOrZero(builder, loc, logsumexp, labelLogit, ignored, origin);
}

llvm::SmallVector<Value> lossOfRows(mlir::OpBuilder& builder, mlir::Location loc, Value logsumexp,
                                    Value labelLogit, Value labels, int64_t ignoreIndex,
                                    int64_t origin) {
  Value ignored = isIgnored(builder, loc, labels, ignoreIndex, origin);
  Value valid = NotOp::create(builder, loc, ignored, origin);
  Value count = CastOp::create(builder, loc, logsumexp.getType(), valid, origin);
  Value loss = lossOrZero(builder, loc, logsumexp, labelLogit, ignored, origin);
  llvm::SmallVector<int64_t> rows = llvm::to_vector(llvm::seq<int64_t>(rankOf(labels)));
  auto total = [&](Value value) -> Value {
    return ReduceSumOp::create(builder, loc, value, rows, /*keep_dims=*/false, origin);
  };
  return {total(loss), total(count), logsumexp};
}

// By class it takes steps, as cross_entropy does.
ShardingRule LinearCrossEntropyOp::getShardingRule() {
  RuleBuilder rule(*this);
  Dims rows = rule.sum(shapeOf(getLabels()));
  int classes = rule.steps(classesOf(getWeight(), getTransposeWeight()));
  rule.operand(0, rows + kWhole);
  rule.operand(1, ofWeight(classes, getTransposeWeight()));
  rule.operand(2, rows);
  if (getBias()) rule.operand(3, {classes});
  rule.result(2, rows);
  return rule.take();
}

// Each row's logsumexp, that of its blocks' logsumexps, and its label's logit.
template <typename Loss>
static std::pair<Value, Value> rowsByBlocks(mlir::OpBuilder& builder, Loss op) {
  mlir::Location loc = op.getLoc();
  int64_t origin = op.getOrigin(), rank = shapeOf(op.getLabels()).size();
  llvm::SmallVector<Value, 1> bias;
  if (op.getBias()) bias.push_back(op.getBias());
  const bool transposed = op.getTransposeWeight();
  auto parts = LinearLogsumexpOp::create(builder, loc, op.getInput(), op.getWeight(),
                                         op.getLabels(), bias, transposed, op.getIgnoreIndex(),
                                         blocksOf(classesOf(op.getWeight(), transposed)),
                                         /*all_blocks=*/0, origin);
  Value max =
      ReduceMaxOp::create(builder, loc, parts.getLogsumexp(), {rank}, /*keep_dims=*/false, origin);
  Value sum = SumExpOp::create(builder, loc, parts.getLogsumexp(), max, origin);
  Value logsumexp =
      AddOp::create(builder, loc, max, LogOp::create(builder, loc, sum, origin), origin);
  return {logsumexp, parts.getLabelLogit()};
}

llvm::SmallVector<Value> LinearCrossEntropyOp::decompose(mlir::OpBuilder& builder) {
  auto [logsumexp, logit] = rowsByBlocks(builder, *this);
  return lossOfRows(builder, getLoc(), logsumexp, logit, getLabels(), getIgnoreIndex(),
                    getOrigin());
}

ShardingRule LinearTokenLossesOp::getShardingRule() {
  RuleBuilder rule(*this);
  Dims rows = rule.parallel(shapeOf(getLabels()));
  int classes = rule.steps(classesOf(getWeight(), getTransposeWeight()));
  rule.operand(0, rows + kWhole);
  rule.operand(1, ofWeight(classes, getTransposeWeight()));
  rule.operand(2, rows);
  if (getBias()) rule.operand(3, {classes});
  rule.result(0, rows);
  rule.result(1, rows);
  return rule.take();
}

llvm::SmallVector<Value> LinearTokenLossesOp::decompose(mlir::OpBuilder& builder) {
  auto [logsumexp, logit] = rowsByBlocks(builder, *this);
  return {
      rowLosses(builder, getLoc(), logsumexp, logit, getLabels(), getIgnoreIndex(), getOrigin()),
      logsumexp};
}

// The label's logit is a sum over the blocks: only one gives more than 0.
ShardingRule LinearLogsumexpOp::getShardingRule() {
  RuleBuilder rule(*this);
  const bool transposed = getTransposeWeight();
  Dims rows = rule.parallel(shapeOf(getLabels()));
  rule.operand(0, rows + kWhole);
  rule.operand(2, rows);
  rule.result(1, rows);
  if (getFirst()) {
    rule.result(0, rows + kWhole);
    return rule.take();
  }
  // Classes are cut between blocks alone.
  int blocks = rule.sum(getBlocks());
  rule.operand(1, ofWeight(blocks, transposed));
  if (getBias()) rule.operand(3, {blocks});
  rule.result(0, rows + blocks);
  return rule.take();
}

mlir::Operation* LinearLogsumexpOp::buildLocal(mlir::OpBuilder& builder, mlir::ValueRange operands,
                                               const LocalPieces& pieces) {
  ShardingRule rule = getShardingRule();
  const FactorList& blocks = rule.results[0].back();
  mlir::Operation* local =
      cloneLocalAt(*this, builder, operands, rule, pieces, blocks, "all_blocks");
  if (!blocks.empty()) {
    llvm::cast<LinearLogsumexpOp>(local).setBlocks(getBlocks() / pieces[blocks.front()]);
  }
  return local;
}

ShardingRule LinearCrossEntropyGradOp::getShardingRule() {
  RuleBuilder rule(*this);
  Dims rows = rule.sum(shapeOf(getLabels()));
  int classes = getFirst() ? kWhole : rule.sum(classesOf(getWeight(), getTransposeWeight()));
  if (!shapeOf(getCotangent()).empty()) rule.operand(0, rows);
  rule.operand(1, rows + kWhole);
  rule.operand(2, ofWeight(classes, getTransposeWeight()));
  rule.operand(3, rows);
  rule.operand(4, rows);
  if (getBias()) rule.operand(5, {classes});
  rule.result(0, rows + kWhole);
  if (getCotangents().size() > 1) rule.result(1, ofWeight(classes, getTransposeWeight()));
  if (getCotangents().size() > 2) rule.result(2, {classes});
  rule.linearIn({0});
  return rule.take();
}

mlir::Operation* LinearCrossEntropyGradOp::buildLocal(mlir::OpBuilder& builder,
                                                      mlir::ValueRange operands,
                                                      const LocalPieces& pieces) {
  ShardingRule rule = getShardingRule();
  return cloneLocalAt(*this, builder, operands, rule, pieces,
                      rule.operands[2][getTransposeWeight() ? 0 : 1], "classes");
}

}  // namespace oriel::ir
