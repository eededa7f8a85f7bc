#include "ir/interfaces/sharding_rule.h"

#include "llvm/ADT/STLExtras.h"

namespace oriel::ir {
namespace {

bool has(const TensorFactors& dims, int factor) {
  return llvm::any_of(dims,
                      [&](const FactorList& list) { return llvm::is_contained(list, factor); });
}

}  // namespace

bool ShardingRule::operandHas(unsigned operand, int factor) const {
  return has(operands[operand], factor);
}

bool ShardingRule::resultHas(unsigned result, int factor) const {
  return has(results[result], factor);
}

llvm::SmallVector<int64_t> localShape(llvm::ArrayRef<int64_t> shape, const TensorFactors& dims,
                                      llvm::ArrayRef<int64_t> pieces) {
  llvm::SmallVector<int64_t> local(shape);
  for (auto [size, factors] : llvm::zip_equal(local, dims)) {
    for (int factor : factors) size /= pieces[factor];
  }
  return local;
}

}  // namespace oriel::ir
