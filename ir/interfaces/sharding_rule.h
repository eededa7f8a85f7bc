// How an op splits over ranks, in the manner of einsum.
//
// A rule names factors, and says which factors each dimension of each operand and result is made
// of, outermost first. For `oriel.linear` on an input [2, 8, 64]:
//
//   input [b, s, k], weight [k, n] -> [b, s, n]     b, s, n parallel; k summed
//
// To split a factor over p ranks, each operand that has it is cut into p equal pieces along it
// (the others are taken whole), the op runs on the pieces, and its results are, by the kind of
// the factor, pieces of the whole results or parts of them that are still to be combined. A
// result without a parallel factor is the same on every rank.
//
// A dimension that is made of several factors ([b, s, 64] reshaped to [b, s, 4, 16]) splits by
// its outermost one first. A dimension without factors is not split: one of size 1 that is
// broadcast, or one that the rule does not let go.
#ifndef ORIEL_IR_INTERFACES_SHARDING_RULE_H_
#define ORIEL_IR_INTERFACES_SHARDING_RULE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "mlir/IR/TypeRange.h"

namespace oriel::ir {

// What the results on pieces of a factor are.
enum class FactorKind {
  kParallel,  // a result with the factor: a piece of it
  kSum,       // a result without it: a summand; with it: a piece
  kMax,       // a result without it: the whole is the elementwise maximum; with it: a piece
  kSteps,     // the op does not split by it, the ops that its `decompose` makes do
};

struct Factor {
  int64_t size = 1;
  FactorKind kind = FactorKind::kParallel;
};

using FactorList = llvm::SmallVector<int, 2>;
// By dimension of a tensor.
using TensorFactors = llvm::SmallVector<FactorList, 4>;

struct ShardingRule {
  std::vector<Factor> factors;
  std::vector<TensorFactors> operands;  // one per operand that is there
  std::vector<TensorFactors> results;   // one per result
  // Groups of operands in which the op is linear: where all operands of one group are pending
  // sums over some ranks, and the others are the same on these ranks, all results are pending
  // sums over them too.
  std::vector<llvm::SmallVector<unsigned, 2>> linear;

  bool operandHas(unsigned operand, int factor) const;
  bool resultHas(unsigned result, int factor) const;
};

// What is wrong with a rule for an op of these types, to follow "a rule that"; nothing if it fits:
// a dimension may be a multiple of its factors, whose rest, the innermost, is whole.
std::optional<std::string> misfitOf(const ShardingRule& rule, mlir::TypeRange operands,
                                    mlir::TypeRange results);

// The shape of a tensor when factor `f` is cut into `pieces[f]` pieces. `pieces` has an entry
// per factor of the rule; each divides the factor's size.
llvm::SmallVector<int64_t> localShape(llvm::ArrayRef<int64_t> shape, const TensorFactors& dims,
                                      llvm::ArrayRef<int64_t> pieces);

}  // namespace oriel::ir

#endif  // ORIEL_IR_INTERFACES_SHARDING_RULE_H_
