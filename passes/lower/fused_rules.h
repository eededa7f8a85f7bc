// Rules (sharding.h) of ops that do what others did: attributes of those, from which an op's pieces
// are checked.
#ifndef ORIEL_PASSES_LOWER_FUSED_RULES_H_
#define ORIEL_PASSES_LOWER_FUSED_RULES_H_

#include "mlir/IR/BuiltinAttributes.h"

namespace oriel {

// The dimensions of each operand, say: a rule's list of this name.
llvm::SmallVector<mlir::Attribute> ruleList(mlir::DictionaryAttr rule, llvm::StringRef name);

// An op with one more operand that is added to result 0. Where the op is linear in some operands,
// the sum is in these and the addend.
mlir::DictionaryAttr withAddend(mlir::DictionaryAttr rule);
// An op that is linear in nothing, with operand 0 in two summands, and with their sum as one more
// result.
mlir::DictionaryAttr withSummands(mlir::DictionaryAttr rule);
// A product with an activation behind it: `results` are all cut as the product's, which is no sum
// over ranks.
mlir::DictionaryAttr withActivation(mlir::DictionaryAttr rule, unsigned results);
// A product with one more operand that its result is multiplied with.
mlir::DictionaryAttr withFactor(mlir::DictionaryAttr rule);
// A weight's gradient, and with it the sums of the cotangent, operand 1, over its rows: these are
// cut as the cotangent's last dimension, and depend on nothing else.
mlir::DictionaryAttr withBiasGrad(mlir::DictionaryAttr rule);

}  // namespace oriel

#endif  // ORIEL_PASSES_LOWER_FUSED_RULES_H_
