#include "ir/interfaces/sharding_rule.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include "mlir/IR/BuiltinTypes.h"

namespace oriel::ir {
namespace {

bool has(const TensorFactors& dims, int factor) {
  return llvm::any_of(dims,
                      [&](const FactorList& list) { return llvm::is_contained(list, factor); });
}

std::optional<std::string> misfitOf(llvm::ArrayRef<TensorFactors> tensors, mlir::TypeRange types,
                                    llvm::ArrayRef<Factor> factors, llvm::StringRef what) {
  if (tensors.size() != types.size()) {
    return ("describes " + llvm::Twine(tensors.size()) + " " + what + "s, the op has " +
            llvm::Twine(types.size()))
        .str();
  }
  for (auto [i, dims] : llvm::enumerate(tensors)) {
    auto fails = [&, number = i](const llvm::Twine& why) {
      return (what + " " + llvm::Twine(number) + " " + why).str();
    };
    auto type = llvm::dyn_cast<mlir::RankedTensorType>(types[i]);
    const auto rank = static_cast<size_t>(type ? type.getRank() : 0);
    if (dims.size() != rank) {
      return "says that " +
             fails("has " + llvm::Twine(dims.size()) + " dimensions, not " + llvm::Twine(rank));
    }
    llvm::SmallDenseSet<int, 8> seen;
    for (auto [dim, list] : llvm::enumerate(dims)) {
      int64_t size = list.empty() ? type.getDimSize(dim) : 1;
      for (int factor : list) {
        if (factor < 0 || factor >= static_cast<int>(factors.size())) {
          return "gives " +
                 fails("the factor " + llvm::Twine(factor) + ", of " + llvm::Twine(factors.size()));
        }
        size *= factors[factor].size;
        if (!seen.insert(factor).second) {
          return "gives " + fails("the factor " + llvm::Twine(factor) +
                                  " twice: an op splits by it in one of its dimensions only; make "
                                  "the other one's a factor of its own, or whole");
        }
      }
      if (size > 0 ? type.getDimSize(dim) % size != 0 : type.getDimSize(dim) != 0) {
        return "makes dimension " + std::to_string(dim) + " of " +
               fails("of pieces of " + llvm::Twine(size) + " elements, which don't divide " +
                     llvm::Twine(type.getDimSize(dim)));
      }
    }
  }
  return std::nullopt;
}

}  // namespace

bool ShardingRule::operandHas(unsigned operand, int factor) const {
  return has(operands[operand], factor);
}

bool ShardingRule::resultHas(unsigned result, int factor) const {
  return has(results[result], factor);
}

std::optional<std::string> misfitOf(const ShardingRule& rule, mlir::TypeRange operands,
                                    mlir::TypeRange results) {
  if (auto why = misfitOf(rule.operands, operands, rule.factors, "operand")) return why;
  if (auto why = misfitOf(rule.results, results, rule.factors, "result")) return why;
  for (auto [index, factor] : llvm::enumerate(rule.factors)) {
    if (factor.kind != FactorKind::kParallel || rule.results.empty()) continue;
    const auto hasIt = [f = static_cast<int>(index)](const TensorFactors& dims) {
      return has(dims, f);
    };
    if (llvm::any_of(rule.operands, hasIt) && llvm::none_of(rule.results, hasIt)) {
      return "has the parallel factor " + std::to_string(index) +
             " in operands and in no result: what is summed over is a sum (or a maximum, or steps)";
    }
  }
  for (const auto& group : rule.linear) {
    for (unsigned operand : group) {
      if (operand < operands.size()) continue;
      return "is linear in operand " + std::to_string(operand) + ", of " +
             std::to_string(operands.size());
    }
  }
  return std::nullopt;
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
