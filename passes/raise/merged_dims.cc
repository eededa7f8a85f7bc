#include "passes/raise/merged_dims.h"

namespace oriel {
namespace {

// The operand and dimension that a factor of a rule is all of; the first that may have been merged.
std::optional<std::pair<mlir::Value, int64_t>> wholeDim(mlir::Operation* op,
                                                        const ir::ShardingRule& rule, int factor) {
  for (auto [operand, dims] : llvm::zip_equal(op->getOperands(), rule.operands)) {
    auto producer = operand.getDefiningOp<ir::ShardableOpInterface>();
    if (!producer || producer->hasTrait<mlir::OpTrait::ConstantLike>()) continue;
    for (auto [dim, factors] : llvm::enumerate(dims)) {
      bool isWhole = factors.size() == 1 && factors.front() == factor;
      if (isWhole && tensorType(operand).getDimSize(dim) == rule.factors[factor].size) {
        return std::pair(operand, static_cast<int64_t>(dim));
      }
    }
  }
  return std::nullopt;
}

// Whether the factor, outermost in its dimension before the op, is behind one of size 1 there.
bool isBehindOne(mlir::Operation* op, const ir::ShardingRule& rule, int factor) {
  for (auto [operand, dims] : llvm::zip_equal(op->getOperands(), rule.operands)) {
    for (size_t dim = 1; dim < dims.size(); ++dim) {
      const bool begins = !dims[dim].empty() && dims[dim].front() == factor;
      if (begins && tensorType(operand).getDimSize(dim - 1) == 1) return true;
    }
  }
  return false;
}

}  // namespace

llvm::SmallVector<int64_t> mergedSizes(mlir::Value value, int64_t dim) {
  const int64_t all = tensorType(value).getDimSize(dim);
  bool withOne = false;  // a dimension of size 1 was merged
  auto finish = [&](llvm::SmallVector<int64_t> sizes) {
    if (withOne && all > 1) sizes.push_back(all);
    return sizes;
  };
  for (;;) {
    auto op = value.getDefiningOp<ir::ShardableOpInterface>();
    if (!op) return finish({});
    ir::ShardingRule rule = op.getShardingRule();
    const ir::FactorList& factors =
        rule.results[llvm::cast<mlir::OpResult>(value).getResultNumber()][dim];
    if (llvm::isa<ir::ReshapeOp>(op) && !factors.empty()) {
      withOne = withOne || isBehindOne(op, rule, factors.front());
    }
    if (factors.size() == 1) {
      auto before = wholeDim(op, rule, factors.front());
      if (!before) return finish({});
      std::tie(value, dim) = *before;
      continue;
    }
    llvm::SmallVector<int64_t> sizes;
    int64_t size = 1;
    for (int factor : llvm::reverse(factors)) {
      size *= rule.factors[factor].size;
      if (size < all) sizes.push_back(size);
    }
    // Else the innermost elements belong to no factor.
    return finish(size == all ? sizes : llvm::SmallVector<int64_t>());
  }
}

bool SplitThenMerge::merges() const {
  return llvm::any_of(merged, [](llvm::ArrayRef<int64_t> dims) { return dims.size() > 1; });
}

std::optional<SplitThenMerge> splitThenMerge(ir::ReshapeOp op) {
  ir::ShardingRule rule = op.getShardingRule();
  SplitThenMerge result;
  for (auto [dim, factors] : llvm::enumerate(rule.results.front())) {
    int64_t size = 1;
    llvm::SmallVector<int64_t> merged;
    for (int factor : factors) {
      merged.push_back(result.sizes.size());
      result.sizes.push_back(rule.factors[factor].size);
      size *= rule.factors[factor].size;
    }
    if (size != op.getType().getDimSize(dim)) return std::nullopt;
    if (factors.empty()) {
      merged.push_back(result.sizes.size());
      result.sizes.push_back(1);
    }
    result.merged.push_back(merged);
  }
  return result;
}

}  // namespace oriel
