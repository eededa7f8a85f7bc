// The positions of a model: what context parallelism cuts of its values.
//
// A loss sums samples and positions, of logits [samples, positions, classes]: of what has three
// dimensions or more they are the second. From there they are followed back through the sharding
// rules of ops; through one that needs all of them (attention, a merge of image features) to the
// operand that has the type of its result, and where there are more of them than the result has,
// or fewer (a slice, a concatenation), to what is like the result in all other dimensions.
#ifndef ORIEL_PASSES_STRATEGIZE_POSITIONS_H_
#define ORIEL_PASSES_STRATEGIZE_POSITIONS_H_

#include <map>
#include <vector>

#include "ir/oriel/oriel.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace oriel {

// Of an op: for each result the dimension that is positions, or -1. Written by `annotate`, where a
// mesh has the axis cp, and read by `propagate`.
inline constexpr llvm::StringLiteral kPositionsAttr("oriel.positions");

struct Positions {
  // The dimension, of each result of an op that has positions.
  llvm::MapVector<mlir::Value, int64_t> dims;
  // What is summed to a loss, and its positions: where they begin. Of a loss of other sums, as a
  // model may compute, the last values that have the positions of its tokens.
  llvm::MapVector<mlir::Value, int64_t> losses;
};

// Of the forward and eval segments of all programs.
Positions findPositions(mlir::ModuleOp module);
// How many a loss of this type sums; 1 for fewer than three dimensions.
int64_t positionsOfLoss(mlir::RankedTensorType summed);
// How many a model has that computes its loss itself, before it is in segments; 1 for none.
int64_t positionsOfOwnLoss(mlir::func::FuncOp main);

// What ranks can have different pieces of, where an op needs all positions: for each dimension of
// the operand that has them the sizes of its factors, outermost first. Of attention's queries
// samples, no positions, and (heads of keys, queries of each).
using WholePositions = std::vector<std::vector<int64_t>>;
// Of a program; the first op of each kind.
std::map<WholePositions, mlir::Operation*> opsOfAllPositions(const Positions& positions,
                                                             mlir::ModuleOp program);

struct RankParts {
  int64_t pieces = 1;          // that are different; divides the number of ranks
  std::vector<int64_t> outer;  // sizes of outer parts of the ranks
};
// How ranks have pieces of their own along one dimension, as many as can be. `taken` are the pieces
// of each dimension that other ranks have.
//
//   4 ranks, {{1}, {}, {2, 4}, {}}, 1 piece of each   →  4 pieces, {2}: ranks 0 and 1 share keys
RankParts partsOf(int64_t ranks, const WholePositions& dims, llvm::ArrayRef<int64_t> taken);

struct PositionsOfValue {
  int64_t dim = 0;
  int64_t count = 0;  // of a sample
};
// The positions of all ops of a forward that are cut with those: of what is computed of them, too,
// such as keys and values. Rows of samples and positions are cut by positions where
// each of `dataRanks` ranks has one sample.
llvm::DenseMap<mlir::Value, PositionsOfValue> positionsBehind(mlir::func::FuncOp forward,
                                                              const Positions& positions,
                                                              int64_t dataRanks);

// Writes the attributes.
void setPositions(const Positions& positions);

}  // namespace oriel

#endif  // ORIEL_PASSES_STRATEGIZE_POSITIONS_H_
