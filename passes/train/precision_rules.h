// How each op computes under mixed precision: as the op itself says, or as the recipe does.
#ifndef ORIEL_PASSES_TRAIN_PRECISION_RULES_H_
#define ORIEL_PASSES_TRAIN_PRECISION_RULES_H_

#include "ir/interfaces/interfaces.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/train/recipe.h"

namespace oriel {

class PrecisionRules {
 public:
  // Refers to the recipe's.
  explicit PrecisionRules(const Recipe::Precision& precision) : precision_(precision) {}

  // Fails, with a diagnostic at the module, on a pattern that no op with a derivative matches, or
  // that decides for none, since others come first; the ops of the backward follow those of the
  // forward.
  mlir::LogicalResult check(mlir::ModuleOp module) const;

  // Wide for an op without the interface.
  ir::Precision of(mlir::Operation* op) const;

 private:
  const Recipe::Precision& precision_;
};

}  // namespace oriel

#endif  // ORIEL_PASSES_TRAIN_PRECISION_RULES_H_
