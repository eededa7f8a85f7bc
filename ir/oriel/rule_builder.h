// Sharding rules, written dimension by dimension.
//
//   RuleBuilder rule(getOperation());
//   Dims rows = rule.parallel(shapeOf(getInput()).drop_back());
//   int k = rule.sum(size), n = rule.parallel(size);
//   rule.operand(0, rows + k);
//   rule.operand(1, Dims{k, n});
//   rule.result(0, rows + n);
//   rule.linearIn({0});
//   return rule.take();
#ifndef ORIEL_IR_ORIEL_RULE_BUILDER_H_
#define ORIEL_IR_ORIEL_RULE_BUILDER_H_

#include <initializer_list>
#include <utility>

#include "ir/interfaces/interfaces.h"

namespace oriel::ir {

// A dimension that is not split.
inline constexpr int kWhole = -1;

// One factor, or kWhole, per dimension. A type of its own, so that its operators are found from
// other namespaces.
struct Dims : llvm::SmallVector<int, 4> {
  using SmallVector::SmallVector;
};

inline Dims operator+(Dims dims, int factor) {
  dims.push_back(factor);
  return dims;
}
inline Dims operator+(Dims dims, const Dims& more) {
  dims.append(more.begin(), more.end());
  return dims;
}

class RuleBuilder {
 public:
  explicit RuleBuilder(mlir::Operation* op) : rule_(wholeRule(op)) {}

  int add(int64_t size, FactorKind kind) {
    rule_.factors.push_back({size, kind});
    return static_cast<int>(rule_.factors.size()) - 1;
  }
  int parallel(int64_t size) { return add(size, FactorKind::kParallel); }
  int sum(int64_t size) { return add(size, FactorKind::kSum); }
  int steps(int64_t size) { return add(size, FactorKind::kSteps); }
  Dims parallel(llvm::ArrayRef<int64_t> shape) { return add(shape, FactorKind::kParallel); }
  Dims sum(llvm::ArrayRef<int64_t> shape) { return add(shape, FactorKind::kSum); }
  Dims steps(llvm::ArrayRef<int64_t> shape) { return add(shape, FactorKind::kSteps); }

  // What does not fit the op is said where rules are checked (misfitOf).
  void operand(unsigned index, const Dims& dims) { assign(rule_.operands, index, dims); }
  void result(unsigned index, const Dims& dims) { assign(rule_.results, index, dims); }
  // A dimension made of several factors, outermost first.
  void operandDim(unsigned index, unsigned dim, const FactorList& factors) {
    rule_.operands[index][dim] = factors;
  }
  void resultDim(unsigned index, unsigned dim, const FactorList& factors) {
    rule_.results[index][dim] = factors;
  }
  // The op is linear in these operands together; may be called for several groups.
  void linearIn(std::initializer_list<unsigned> operands) { rule_.linear.emplace_back(operands); }

  ShardingRule take() { return std::move(rule_); }

 private:
  Dims add(llvm::ArrayRef<int64_t> shape, FactorKind kind) {
    Dims dims;
    for (int64_t size : shape) dims.push_back(add(size, kind));
    return dims;
  }
  static void assign(std::vector<TensorFactors>& tensors, unsigned index, const Dims& dims) {
    if (index >= tensors.size()) tensors.resize(index + 1);
    TensorFactors& target = tensors[index];
    target.assign(dims.size(), {});
    for (auto [list, factor] : llvm::zip_equal(target, dims)) {
      if (factor != kWhole) list.push_back(factor);
    }
  }

  ShardingRule rule_;
};

}  // namespace oriel::ir

#endif  // ORIEL_IR_ORIEL_RULE_BUILDER_H_
