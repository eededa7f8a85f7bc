// Sharding rules of attention and rotary embedding.
#include "ir/oriel/inference.h"
#include "ir/oriel/oriel.h"
#include "ir/oriel/rule_builder.h"

namespace oriel::ir {

namespace {

// Query heads are (key heads, queries of each): split by key heads first, so that each rank has
// the key heads that its queries attend to.
struct AttentionFactors {
  int batch, keyHeads, group, queries, depth;
  bool sequenceFirst;

  static FactorList list(int factor) {
    return factor == kWhole ? FactorList{} : FactorList{factor};
  }

  // [b, h, s, columns], or [b, s, h, columns]
  TensorFactors rows(int columns) const {
    TensorFactors dims = scores();
    dims[3] = list(columns);
    if (sequenceFirst) std::swap(dims[1], dims[2]);
    return dims;
  }
  // [b, g, t, columns], or [b, t, g, columns]
  TensorFactors keys(int columns) const {
    TensorFactors dims = {{batch}, {keyHeads}, {}, list(columns)};
    if (sequenceFirst) std::swap(dims[1], dims[2]);
    return dims;
  }
  // [b, h, s, t] in any layout
  TensorFactors scores() const { return {{batch}, {keyHeads, group}, list(queries), {}}; }
  TensorFactors logsumexp() const {
    TensorFactors dims = scores();
    dims.pop_back();
    return dims;
  }
  // [h]
  TensorFactors sink() const { return {{keyHeads, group}}; }
  // The optional operands: a mask, then a sink, of the rule's last operands.
  template <typename OpTy>
  void setOptional(OpTy op, ShardingRule& rule) const {
    if (op.getMask()) {
      rule.operands[op.getMaskMutable()[0].getOperandNumber()] = mask(shapeOf(op.getMask()));
    }
    if (op.getSink()) rule.operands[op.getSinkMutable()[0].getOperandNumber()] = sink();
  }
  // A dimension that the mask repeats has no factor.
  TensorFactors mask(llvm::ArrayRef<int64_t> shape) const {
    TensorFactors dims = scores();
    for (auto [size, factors] : llvm::zip_equal(shape, dims)) {
      if (size == 1) factors.clear();
    }
    return dims;
  }
};

// `shared` is the kind of what all add to the cotangents of keys and values.
template <typename OpTy>
AttentionFactors attentionFactors(OpTy op, RuleBuilder& rule, FactorKind shared) {
  llvm::ArrayRef<int64_t> q = shapeOf(op.getQuery());
  llvm::ArrayRef<int64_t> k = shapeOf(op.getKey());
  unsigned heads = op.getSequenceFirst() ? 2 : 1;
  auto add = [&](int64_t size) {
    return shared == FactorKind::kSum ? rule.sum(size) : rule.parallel(size);
  };
  AttentionFactors f;
  f.sequenceFirst = op.getSequenceFirst();
  f.batch = rule.parallel(q[0]);
  f.keyHeads = rule.parallel(k[heads]);
  f.group = add(q[heads] / k[heads]);
  // A piece of the queries would need to know where it begins.
  bool byPosition = op.getCausal() || op.getWindow() > 0;
  f.queries = byPosition ? kWhole : add(q[3 - heads]);
  f.depth = add(shapeOf(op.getValue())[3]);
  return f;
}

}  // namespace

ShardingRule AttentionOp::getShardingRule() {
  RuleBuilder builder(*this);
  AttentionFactors f = attentionFactors(*this, builder, FactorKind::kParallel);
  ShardingRule rule = builder.take();
  rule.operands[0] = f.rows(kWhole);
  rule.operands[1] = f.keys(kWhole);
  rule.operands[2] = f.keys(f.depth);
  f.setOptional(*this, rule);
  rule.results[0] = f.rows(f.depth);
  rule.results[1] = f.logsumexp();
  return rule;
}

ShardingRule AttentionGradOp::getShardingRule() {
  RuleBuilder builder(*this);
  AttentionFactors f = attentionFactors(*this, builder, FactorKind::kSum);
  builder.linearIn({0});
  ShardingRule rule = builder.take();
  rule.operands[0] = f.rows(f.depth);
  rule.operands[1] = f.rows(kWhole);
  rule.operands[2] = f.keys(kWhole);
  rule.operands[3] = f.keys(f.depth);
  rule.operands[4] = f.rows(f.depth);
  rule.operands[5] = f.logsumexp();
  f.setOptional(*this, rule);
  rule.results[0] = f.rows(kWhole);
  rule.results[1] = f.keys(kWhole);
  rule.results[2] = f.keys(f.depth);
  return rule;
}

ShardingRule RopeOp::getShardingRule() {
  // The halves of the last dimension mix.
  ShardingRule rule = pointwiseRule(*this, {getType().getRank() - 1});
  rule.linear = {{0}};
  return rule;
}

}  // namespace oriel::ir
