// The positions of a model: what context parallelism cuts of its values.
//
// A loss is a sum over samples and positions: of logits [samples, positions, classes], the first
// dimension behind the samples. From there they are followed back through the sharding rules of
// ops; through one that needs all of them (attention, a merge of image features) to the operand
// that has the type of its result.
#ifndef ORIEL_PASSES_STRATEGIZE_POSITIONS_H_
#define ORIEL_PASSES_STRATEGIZE_POSITIONS_H_

#include <set>

#include "ir/oriel/oriel.h"
#include "llvm/ADT/MapVector.h"
#include "mlir/IR/BuiltinOps.h"

namespace oriel {

// Of an op: for each result the dimension that is positions, or -1. Written by `annotate`, where a
// mesh has the axis cp, and read by `propagate`.
inline constexpr llvm::StringLiteral kPositionsAttr("oriel.positions");

struct Positions {
  // The dimension, of each result of an op that has positions.
  llvm::MapVector<mlir::Value, int64_t> dims;
  // What is summed to a loss, and its positions: where they begin.
  llvm::MapVector<mlir::Value, int64_t> losses;
};

// Of the forward and eval segments of all programs.
Positions findPositions(mlir::ModuleOp module);

// Of ops that need all positions: the sizes of factors that have others inside in the same
// dimension. Of attention whose heads share keys: how many keys there are.
std::set<int64_t> outerFactors(const Positions& positions);

// Writes the attributes.
void setPositions(const Positions& positions);

}  // namespace oriel

#endif  // ORIEL_PASSES_STRATEGIZE_POSITIONS_H_
