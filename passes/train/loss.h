// The token cross-entropy of a recipe, and the predictions that evaluation compares.
#ifndef ORIEL_PASSES_TRAIN_LOSS_H_
#define ORIEL_PASSES_TRAIN_LOSS_H_

#include "ir/oriel/oriel.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "passes/train/recipe.h"

namespace oriel {

// For a sum: fails with a diagnostic at `loc` unless the output is f32.
mlir::LogicalResult checkSummand(mlir::Location loc, const Recipe::Loss& loss,
                                 mlir::RankedTensorType output);

// The two numbers that are added up over microbatches and ranks: loss = sum / count.
struct LossValues {
  mlir::Value sum, count;
};

// The sum of the output's elements (of a single one itself); the count is 1.
LossValues buildSum(mlir::OpBuilder& builder, mlir::Location loc, mlir::Value output);

// Fails with a diagnostic at `loc` unless the logits are f32 of shape [b, s, v] with labels
// [b, s], or [n, v] with labels [n] or of any shape with n elements; shifted labels need rank
// >= 2 and two positions.
mlir::LogicalResult checkLossTypes(mlir::Location loc, const Recipe::Loss& loss,
                                   mlir::RankedTensorType logits, mlir::RankedTensorType labels);

// Logits with classes behind the last that have the probability 0 whatever the parameters: where
// these are a slice, and all that it cuts away is -inf by a bias. Null where they are not.
mlir::Value findWideLogits(mlir::Value logits);

// Makes a cross entropy, or token losses, read such wide logits, with a runtime error at `ofLabels`
// for a label beyond the true classes, and logits that were only widened to f32 as they were (the
// sums are f32 all the same), unless the recipe's precision says that the op takes f32.
template <typename Loss>
void readLogitsAsMade(Loss loss, const Recipe::Precision& precision, mlir::Location ofLabels);

// Sum of the token losses and number of valid tokens, of logits as they were made. The shift is one
// of the labels (the last position gets the ignored label), so that the logits need no copy.
LossValues buildCrossEntropy(mlir::OpBuilder& builder, mlir::Location loc, const Recipe& recipe,
                             mlir::Value logits, mlir::Value labels);

// The argmax of the logits' rows (of the wide and narrow ones: it is the same).
mlir::Value buildArgmax(mlir::OpBuilder& builder, mlir::Location loc, mlir::Value logits);

// Of that, shaped like the labels: element i predicts label i. With a shift nothing predicts
// position 0, which holds 0.
mlir::Value buildPredictions(mlir::OpBuilder& builder, mlir::Location loc, const Recipe::Loss& loss,
                             mlir::Value best, mlir::RankedTensorType labels);

}  // namespace oriel

#endif  // ORIEL_PASSES_TRAIN_LOSS_H_
