// Types, attributes and locations of MLIR as the plan has them.
#ifndef ORIEL_PASSES_EMIT_TRANSLATE_H_
#define ORIEL_PASSES_EMIT_TRANSLATE_H_

#include <string>

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/Operation.h"
#include "runtime/plan/plan.pb.h"

namespace oriel {

// The first three fail with a diagnostic at `op` for what the plan can't express.
mlir::LogicalResult toPlanTensor(mlir::Type type, mlir::Operation* op, plan::Tensor* tensor);
// Little-endian, row-major; a boolean is one byte.
mlir::LogicalResult toPlanBytes(mlir::ElementsAttr value, mlir::Operation* op, std::string* bytes);
mlir::LogicalResult toPlanAttribute(mlir::Attribute value, mlir::Operation* op,
                                    plan::Attribute* attribute);

// A launch's rule, as partition writes it (see passes/partition/local_rule.h).
mlir::LogicalResult toPlanRule(mlir::DictionaryAttr attribute, mlir::Operation* op,
                               plan::SplitRule* rule);

}  // namespace oriel

#endif  // ORIEL_PASSES_EMIT_TRANSLATE_H_
