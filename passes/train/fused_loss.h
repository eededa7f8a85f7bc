// The cross entropy of an output layer without ever holding all logits.
#ifndef ORIEL_PASSES_TRAIN_FUSED_LOSS_H_
#define ORIEL_PASSES_TRAIN_FUSED_LOSS_H_

#include "passes/train/loss.h"

namespace oriel {

// Where the loss is the cross entropy of a linear layer's result, perhaps reshaped in front of the
// classes, or scaled by one number if the layer has no bias, and nothing else reads that: makes one
// linear_cross_entropy of the two, and gives its values. What scales the logits scales the layer's
// input then, and its rounding is that of narrow inputs; of a layer that several losses take slices
// of rows of, each has its rows. Elsewhere gives the loss as it is.
LossValues fuseLoss(LossValues loss);
// The same of token losses that the model computes. Whether it was done.
bool fuseTokenLosses(ir::TokenLossesOp losses);

// The same loss, and the argmax of the logits of each row [n.., positions], of some positions after
// the other: the layer, the cross entropy and the argmax once for each of a few pieces, so that no
// more logits are held. Of a loss that fuseLoss() takes. Where `ranks` divide the positions, they
// divide those of a piece.
struct LossAndPredictions {
  LossValues loss;
  mlir::Value predictions;
};
LossAndPredictions evaluateInPieces(LossValues loss, int64_t ranks);

}  // namespace oriel

#endif  // ORIEL_PASSES_TRAIN_FUSED_LOSS_H_
