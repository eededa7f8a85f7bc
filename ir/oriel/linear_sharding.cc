// Sharding rules of contractions.
#include "ir/oriel/inference.h"
#include "ir/oriel/matmul_dims.h"
#include "ir/oriel/oriel.h"
#include "ir/oriel/rule_builder.h"

namespace oriel::ir {

using mlir::Value;

namespace {

Dims matrix(int rows, int columns, bool transposed) {
  return transposed ? Dims{columns, rows} : Dims{rows, columns};
}

}  // namespace

ShardingRule MatmulOp::getShardingRule() {
  RuleBuilder rule(*this);
  MatmulDims dims = *MatmulDims::of(*this);
  Dims batch = rule.parallel(dims.batch);
  Dims m = rule.parallel(dims.rows);
  Dims n = rule.parallel(dims.columns);
  Dims k = rule.sum(dims.sum);
  rule.operand(0, batch + (getTransposeLhs() ? k + m : m + k));
  rule.operand(1, batch + (getTransposeRhs() ? n + k : k + n));
  rule.result(0, batch + m + n);
  rule.linearIn({0});
  rule.linearIn({1});
  return rule.take();
}

// Rows follow from the rows before them.
ShardingRule TriangularSolveOp::getShardingRule() {
  RuleBuilder rule(*this);
  Dims batch = rule.parallel(shapeOf(getMatrix()).drop_back(2));
  int n = rule.parallel(getType().getShape().back());
  rule.operand(0, batch + kWhole + kWhole);
  rule.operand(1, batch + kWhole + n);
  rule.result(0, batch + kWhole + n);
  rule.linearIn({1});
  return rule.take();
}

ShardingRule LinearOp::getShardingRule() {
  RuleBuilder rule(*this);
  Dims rows = rule.parallel(shapeOf(getInput()).drop_back());
  int n = rule.parallel(getType().getShape().back());
  // Each summand would add the bias once more: it is added to the sum.
  int k = rule.add(shapeOf(getInput()).back(), getBias() ? FactorKind::kSteps : FactorKind::kSum);
  rule.operand(0, rows + k);
  rule.operand(1, matrix(k, n, getTransposeWeight()));
  rule.result(0, rows + n);
  if (getBias()) {
    rule.operand(2, {n});
    rule.linearIn({0, 2});
    rule.linearIn({1, 2});
  } else {
    rule.linearIn({0});
    rule.linearIn({1});
  }
  return rule.take();
}

llvm::SmallVector<Value> LinearOp::decompose(mlir::OpBuilder& builder) {
  if (!getBias()) return {};
  Value product = LinearOp::create(builder, getLoc(), getInput(), getWeight(), /*bias=*/Value(),
                                   getTransposeWeight(), getOrigin());
  return {AddOp::create(builder, getLoc(), product, getBias(), getOrigin())};
}

ShardingRule LinearWeightGradOp::getShardingRule() {
  RuleBuilder rule(*this);
  Dims rows = rule.sum(shapeOf(getInput()).drop_back());
  int k = rule.parallel(shapeOf(getInput()).back());
  int n = rule.parallel(shapeOf(getCotangent()).back());
  rule.operand(0, rows + k);
  rule.operand(1, rows + n);
  rule.result(0, matrix(k, n, getTransposeWeight()));
  rule.linearIn({0});
  rule.linearIn({1});
  return rule.take();
}

namespace {

// The factors of a convolution: samples; groups, and the channels of each. Positions stay whole:
// windows overlap.
struct ConvFactors {
  int samples = kWhole;
  FactorList input;   // of dimension 1 of the input
  FactorList output;  // of dimension 1 of the output, and dimension 0 of the weight
  FactorList inner;   // of dimension 1 of the weight
};

enum class ConvTensor { kInput, kWeight, kOutput };

// What a tensor of the convolution has in its first two dimensions.
std::pair<FactorList, FactorList> convDims(const ConvFactors& conv, ConvTensor tensor) {
  FactorList samples;
  if (conv.samples != kWhole) samples.push_back(conv.samples);
  switch (tensor) {
    case ConvTensor::kInput:
      return {samples, conv.input};
    case ConvTensor::kOutput:
      return {samples, conv.output};
    case ConvTensor::kWeight:
      return {conv.output, conv.inner};
  }
  llvm_unreachable("all tensors are listed");
}

// `weight` is the shape [o, c / group, ..].
ConvFactors convFactors(RuleBuilder& rule, int64_t samples, llvm::ArrayRef<int64_t> weight,
                        int64_t group, FactorKind samplesKind, FactorKind outputKind,
                        FactorKind innerKind) {
  ConvFactors conv;
  conv.samples = rule.add(samples, samplesKind);
  if (group > 1) {
    int groups = rule.parallel(group);
    conv.input.push_back(groups);
    conv.output.push_back(groups);
  }
  conv.output.push_back(rule.add(weight[0] / group, outputKind));
  conv.inner.push_back(rule.add(weight[1], innerKind));
  conv.input.push_back(conv.inner.front());
  return conv;
}

void splitOperand(RuleBuilder& rule, unsigned index, const ConvFactors& conv, ConvTensor tensor) {
  auto [first, second] = convDims(conv, tensor);
  rule.operandDim(index, 0, first);
  rule.operandDim(index, 1, second);
}

void splitResult(RuleBuilder& rule, const ConvFactors& conv, ConvTensor tensor) {
  auto [first, second] = convDims(conv, tensor);
  rule.resultDim(0, 0, first);
  rule.resultDim(0, 1, second);
}

// Fewer groups, if they are split. Their factor is the second of the rule.
template <typename OpTy>
mlir::Operation* localConv(OpTy op, mlir::OpBuilder& builder, mlir::ValueRange operands,
                           const LocalPieces& pieces) {
  mlir::Operation* local = cloneLocal(op, builder, operands, op.getShardingRule(), pieces);
  if (op.getGroup() > 1) llvm::cast<OpTy>(local).setGroup(op.getGroup() / pieces[1]);
  return local;
}

}  // namespace

ShardingRule ConvOp::getShardingRule() {
  RuleBuilder rule(*this);
  ConvFactors conv = convFactors(rule, shapeOf(getInput())[0], shapeOf(getWeight()), getGroup(),
                                 FactorKind::kParallel, FactorKind::kParallel,
                                 getBias() ? FactorKind::kSteps : FactorKind::kSum);
  splitOperand(rule, 0, conv, ConvTensor::kInput);
  splitOperand(rule, 1, conv, ConvTensor::kWeight);
  splitResult(rule, conv, ConvTensor::kOutput);
  if (getBias()) {
    rule.operandDim(2, 0, conv.output);
    rule.linearIn({0, 2});
    rule.linearIn({1, 2});
  } else {
    rule.linearIn({0});
    rule.linearIn({1});
  }
  return rule.take();
}

llvm::SmallVector<Value> ConvOp::decompose(mlir::OpBuilder& builder) {
  if (!getBias()) return {};
  Value product = ConvOp::create(builder, getLoc(), getInput(), getWeight(), /*bias=*/Value(),
                                 getStrides(), getPads(), getDilations(), getGroup(), getOrigin());
  // [o] -> [o, 1, ..], which broadcasts over positions.
  llvm::SmallVector<int64_t> shape(getType().getRank() - 1, 1);
  shape[0] = shapeOf(getBias())[0];
  Value bias = ReshapeOp::create(builder, getLoc(), tensorType(getBias()).clone(shape), getBias(),
                                 getOrigin());
  return {AddOp::create(builder, getLoc(), product, bias, getOrigin())};
}

ShardingRule ConvInputGradOp::getShardingRule() {
  RuleBuilder rule(*this);
  ConvFactors conv = convFactors(rule, shapeOf(getCotangent())[0], shapeOf(getWeight()), getGroup(),
                                 FactorKind::kParallel, FactorKind::kSum, FactorKind::kParallel);
  splitOperand(rule, 0, conv, ConvTensor::kOutput);
  splitOperand(rule, 1, conv, ConvTensor::kWeight);
  splitResult(rule, conv, ConvTensor::kInput);
  rule.linearIn({0});
  rule.linearIn({1});
  return rule.take();
}

ShardingRule ConvWeightGradOp::getShardingRule() {
  RuleBuilder rule(*this);
  ConvFactors conv = convFactors(rule, shapeOf(getCotangent())[0], getType().getShape(), getGroup(),
                                 FactorKind::kSum, FactorKind::kParallel, FactorKind::kParallel);
  splitOperand(rule, 0, conv, ConvTensor::kOutput);
  splitOperand(rule, 1, conv, ConvTensor::kInput);
  splitResult(rule, conv, ConvTensor::kWeight);
  rule.linearIn({0});
  rule.linearIn({1});
  return rule.take();
}

mlir::Operation* ConvOp::buildLocal(mlir::OpBuilder& builder, mlir::ValueRange operands,
                                    const LocalPieces& pieces) {
  return localConv(*this, builder, operands, pieces);
}
mlir::Operation* ConvInputGradOp::buildLocal(mlir::OpBuilder& builder, mlir::ValueRange operands,
                                             const LocalPieces& pieces) {
  return localConv(*this, builder, operands, pieces);
}
mlir::Operation* ConvWeightGradOp::buildLocal(mlir::OpBuilder& builder, mlir::ValueRange operands,
                                              const LocalPieces& pieces) {
  return localConv(*this, builder, operands, pieces);
}

}  // namespace oriel::ir
