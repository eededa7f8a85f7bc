// The cross entropy of an output layer as one op with that layer.
#ifndef ORIEL_PASSES_TRAIN_FUSED_LOSS_H_
#define ORIEL_PASSES_TRAIN_FUSED_LOSS_H_

#include "passes/train/loss.h"

namespace oriel {

// Where the loss is the cross entropy of a linear layer's result, perhaps reshaped in front of the
// classes, and nothing else reads that: makes one linear_cross_entropy of the two, which never
// holds all logits, and gives its values. Elsewhere gives the loss as it is.
LossValues fuseLoss(LossValues loss);

}  // namespace oriel

#endif  // ORIEL_PASSES_TRAIN_FUSED_LOSS_H_
