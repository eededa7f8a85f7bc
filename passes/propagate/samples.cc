#include "passes/propagate/samples.h"

#include "ir/interfaces/interfaces.h"
#include "ir/interfaces/tensor_type.h"
#include "ir/oriel/oriel.h"

namespace oriel {

namespace {

using mlir::Operation;
using mlir::Value;
using DimOfValue = llvm::DenseMap<Value, int64_t>;

// The factor of a dimension that is cut first; -1 if there is none.
int outermost(const ir::TensorFactors& dims, int64_t dim) {
  return dims[dim].empty() ? -1 : dims[dim].front();
}

// The dimension of which the factor is the outermost one.
std::optional<int64_t> dimOf(const ir::TensorFactors& dims, int factor) {
  for (size_t dim = 0; dim < dims.size(); ++dim) {
    if (factor >= 0 && outermost(dims, dim) == factor) return dim;
  }
  return std::nullopt;
}

// The factor of the op that numbers samples, by what is known of the values; -1 if there is none.
int sampleFactor(const ir::ShardingRule& rule, mlir::ValueRange values,
                 llvm::ArrayRef<ir::TensorFactors> dims, const DimOfValue& known) {
  for (auto [value, factors] : llvm::zip_equal(values, dims)) {
    auto dim = known.find(value);
    if (dim == known.end()) continue;
    const int factor = outermost(factors, dim->second);
    if (factor >= 0 && rule.factors[factor].kind == ir::FactorKind::kParallel) return factor;
  }
  return -1;
}

// Whether all ops take the value's samples one by one: else ranks would have to exchange what each
// has at hand.
bool isTakenBySample(Value value, int64_t dim) {
  return llvm::all_of(value.getUses(), [&](mlir::OpOperand& use) {
    if (use.getOwner()->hasTrait<mlir::OpTrait::IsTerminator>()) return true;
    const ir::ShardingRule rule = ruleOf(use.getOwner());
    const int factor = outermost(rule.operands[use.getOperandNumber()], dim);
    return factor >= 0 && rule.factors[factor].kind == ir::FactorKind::kParallel;
  });
}

}  // namespace

SamplesOfNone::SamplesOfNone(mlir::func::FuncOp segment,
                             llvm::function_ref<std::optional<int64_t>(Value)> known) {
  mlir::Block& block = segment.getBody().front();
  DimOfValue ofSamples;
  auto learn = [&](Value value) {
    if (std::optional<int64_t> dim = known(value)) ofSamples[value] = *dim;
  };
  llvm::for_each(block.getArguments(), learn);
  for (Operation& op : block.without_terminator()) {
    if (llvm::isa<ir::ReceiveOp>(op)) {
      learn(op.getResult(0));
      continue;
    }
    if (llvm::none_of(op.getOperands(), [&](Value value) { return ofSamples.contains(value); })) {
      continue;
    }
    const ir::ShardingRule rule = ruleOf(&op);
    const int factor = sampleFactor(rule, op.getOperands(), rule.operands, ofSamples);
    for (auto [result, dims] : llvm::zip_equal(op.getResults(), rule.results)) {
      if (std::optional<int64_t> dim = dimOf(dims, factor)) ofSamples[result] = *dim;
    }
  }
  // From what is taken beside samples back to what it is made of.
  for (Operation& op : llvm::reverse(block.without_terminator())) {
    for (Value result : op.getResults()) {
      auto dim = dims_.find(result);
      if (dim != dims_.end() && !isTakenBySample(result, dim->second)) dims_.erase(dim);
    }
    auto isKnown = [&](Value value) { return ofSamples.contains(value) || dims_.contains(value); };
    if (llvm::all_of(op.getOperands(), isKnown) ||
        (llvm::none_of(op.getOperands(), isKnown) && llvm::none_of(op.getResults(), isKnown))) {
      continue;
    }
    const ir::ShardingRule rule = ruleOf(&op);
    int factor = sampleFactor(rule, op.getOperands(), rule.operands, ofSamples);
    if (factor < 0) factor = sampleFactor(rule, op.getResults(), rule.results, dims_);
    for (auto [operand, dims] : llvm::zip_equal(op.getOperands(), rule.operands)) {
      std::optional<int64_t> dim = dimOf(dims, factor);
      if (dim && operand.getDefiningOp() && !ofSamples.contains(operand)) {
        dims_.try_emplace(operand, *dim);
      }
    }
  }
}

std::optional<Sharding> SamplesOfNone::cut(mlir::OpResult result, std::optional<Sharding> positions,
                                           const AxisList& data, const AxisSizes& sizes) const {
  auto dim = dims_.find(result);
  // Constants are made where they are used, in the pieces that are used.
  const bool isConstant = result.getOwner()->getNumOperands() == 0;
  if (dim == dims_.end() || isConstant || data.empty()) return positions;
  Sharding cut = positions.value_or(Sharding::replicated(ir::rankOf(result)));
  AxisList& samples = cut.dims[dim->second];
  samples.insert(samples.begin(), data.begin(), data.end());
  return sizes.divides(ir::shapeOf(result), cut) ? cut : positions;
}

void SamplesOfNone::forget(Operation* op) {
  for (Value result : op->getResults()) dims_.erase(result);
}

}  // namespace oriel
