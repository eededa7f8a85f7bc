// What a local op says about how it came from a global one, for the verifier of plans.
#ifndef ORIEL_PASSES_PARTITION_LOCAL_RULE_H_
#define ORIEL_PASSES_PARTITION_LOCAL_RULE_H_

#include <variant>
#include <vector>

#include "ir/interfaces/sharding_rule.h"
#include "mlir/IR/Builders.h"
#include "passes/propagate/op_split.h"

namespace oriel {

// An operand that is no piece of a tensor, but the index where the rank's piece of a factor begins.
struct FirstOf {
  int factor;
};
using LocalOperand = std::variant<ir::TensorFactors, FirstOf>;

// The rule of a local op, with an entry for each of its operands and results.
struct LocalRule {
  std::vector<ir::Factor> factors;
  std::vector<LocalOperand> operands;
  std::vector<ir::TensorFactors> results;
  std::vector<llvm::SmallVector<unsigned, 2>> linear;

  // {factors = [[size, kind], ..], operands = [[[factor, ..], ..], first, ..], results = [..],
  //  linear = [[operand, ..], ..]}, where a dimension is a list of factors and `first` is a number.
  mlir::DictionaryAttr toAttr(mlir::MLIRContext* context) const;
};

// The ops that were built for one op on a rank's pieces get the attributes `oriel.rule`,
// `oriel.split` and, where they lack it, `oriel.shardings`. The last of them gives the op's
// results; the others are steps towards them, pieces where they are made of pieces. Ops of whole
// values get nothing.
void describeLocalOps(llvm::ArrayRef<mlir::Operation*> ops, mlir::ValueRange operands,
                      const llvm::DenseMap<mlir::Value, int>& firsts, const ir::ShardingRule& rule,
                      const OpSplit& split, const AxisSizes& sizes);

}  // namespace oriel

#endif  // ORIEL_PASSES_PARTITION_LOCAL_RULE_H_
