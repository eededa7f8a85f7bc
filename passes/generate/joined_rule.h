// The sharding rule of pointwise ops that run as one launch.
#ifndef ORIEL_PASSES_GENERATE_JOINED_RULE_H_
#define ORIEL_PASSES_GENERATE_JOINED_RULE_H_

#include <optional>

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

namespace oriel {

// What `oriel.rule` and `oriel.split` say of a launch; both null for one of whole tensors.
struct RuleAndSplit {
  mlir::DictionaryAttr rule;
  mlir::ArrayAttr split;
};

// Of `ops` (in order, each of values before it) as one op from `operands` to `results`. None if
// they don't fit: some are cut and some are not, or in different ways.
std::optional<RuleAndSplit> joinedRule(llvm::ArrayRef<mlir::Operation*> ops,
                                       llvm::ArrayRef<mlir::Value> operands,
                                       llvm::ArrayRef<mlir::Value> results);

}  // namespace oriel

#endif  // ORIEL_PASSES_GENERATE_JOINED_RULE_H_
