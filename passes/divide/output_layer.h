// The linear layer whose columns are the classes of a loss.
#ifndef ORIEL_PASSES_DIVIDE_OUTPUT_LAYER_H_
#define ORIEL_PASSES_DIVIDE_OUTPUT_LAYER_H_

#include <optional>
#include <string>
#include <vector>

#include "ir/oriel/oriel.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace oriel {

struct OutputLayer {
  ir::LinearOp linear;
  // In order, what is between it and the logits, and keeps the classes apart: reshapes, slices of
  // positions, a scale, soft caps.
  llvm::SmallVector<mlir::Operation*> behind;
};

// The operand of an op behind the layer that has its classes along the last dimension, as the
// result has; null where classes are mixed, picked, or not there.
mlir::OpOperand* classesOf(mlir::Operation* op);

// Those of the logits that `main` returns as `output`, and of each cross entropy that it computes.
std::vector<OutputLayer> outputLayersOf(mlir::func::FuncOp main, llvm::StringRef output);

}  // namespace oriel

#endif  // ORIEL_PASSES_DIVIDE_OUTPUT_LAYER_H_
