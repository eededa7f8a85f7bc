// Turns a model into the four segments that train and evaluate it.
#ifndef ORIEL_PASSES_TRAIN_TRAINING_PROGRAM_H_
#define ORIEL_PASSES_TRAIN_TRAINING_PROGRAM_H_

#include "mlir/IR/BuiltinOps.h"
#include "passes/train/recipe.h"

namespace oriel {

// Replaces @main of the module by
//   @forward(inputs, parameters, loss_sum, token_count) -> (stash, loss_sum', token_count')
//   @backward(stash, inputs, parameters, gradients) -> (gradients')
//   @update(parameters, states, gradients, accumulators, scalars)
//       -> (parameters', states', gradients', accumulators', loss, grad_norm, token_count)
//   @eval(inputs, parameters) -> (loss_sum, token_count, predictions, logits)
// with the roles of ir/oriel/segment.h. The stash holds the forward values that the backward
// reads, less what it gets as arguments of its own (inputs, parameters) or repeats (constants,
// views). Arguments that a segment does not use are left out.
//
// With `fusesLoss` the forward's loss is one op with the output layer (fused_loss.h), where it can
// be, else there is a warning; and what is evaluated at a time divides over `positionRanks`.
//
// Fails with a diagnostic where recipe and model don't fit.
mlir::LogicalResult buildTrainingProgram(mlir::ModuleOp module, const Recipe& recipe,
                                         bool fusesLoss = false, int64_t positionRanks = 1);

}  // namespace oriel

#endif  // ORIEL_PASSES_TRAIN_TRAINING_PROGRAM_H_
