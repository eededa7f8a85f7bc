// What is computed of several pieces alike, computed of all of them at once.
//
// A model that takes images of any size loops over them: exported, each op of the loop is there
// once for each image, on slices of what holds the patches of all, and the results are
// concatenated. An op may stand for such a series where its sharding rule has a parallel factor
// along which partition would cut it into them again: rows of a linear layer, samples of an
// attention or of a convolution.
#ifndef ORIEL_PASSES_RAISE_PIECEWISE_H_
#define ORIEL_PASSES_RAISE_PIECEWISE_H_

#include "ir/oriel/oriel.h"
#include "mlir/IR/PatternMatch.h"

namespace oriel {

// Computes operands of the concatenation, those of each run of one type, at once: what they are
// computed by must be the same ops, on slices that follow each other in one value, on constants,
// or on what all pieces share. Where something else uses what is computed in between, it gets
// slices. The concatenation is replaced and erased, with the ops that are not needed any more.
// Fails, and changes nothing, where no run is computed so.
mlir::LogicalResult computeAtOnce(ir::ConcatOp concat, mlir::RewriterBase& rewriter);

}  // namespace oriel

#endif  // ORIEL_PASSES_RAISE_PIECEWISE_H_
