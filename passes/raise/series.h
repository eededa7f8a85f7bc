// Series of equal ops, one for each piece of a value, as unrolled loops leave them.
#ifndef ORIEL_PASSES_RAISE_SERIES_H_
#define ORIEL_PASSES_RAISE_SERIES_H_

#include <optional>
#include <set>
#include <vector>

#include "ir/oriel/oriel.h"

namespace oriel {

// A value for each piece.
using Pieces = std::vector<mlir::Value>;
// The ops that compute one: equal but for their operands.
using Series = std::vector<mlir::Operation*>;

Pieces operandsOf(const Series& series, unsigned index);

bool isShared(const Pieces& pieces);
// Different constants that are small enough to be one.
bool areConstants(const Pieces& pieces);

// Pieces that follow each other in one value along a dimension: all of it from `start` on.
struct Stretch {
  mlir::Value all;
  int64_t dim, start;
};
std::optional<Stretch> matchStretch(const Pieces& pieces);

// Nothing if the pieces are not computed by equal ops of one block.
std::optional<Series> matchSeries(const Pieces& pieces);

// Makes what follows two values that a loop computes one after the other: the same ops on the slice
// or row that follows theirs. Null, with nothing but dead ops made, where they are not alike so, or
// none follows.
class NextInSeries {
 public:
  explicit NextInSeries(mlir::OpBuilder& builder) : builder_(builder) {}

  mlir::Value make(mlir::Value previous, mlir::Value current);

 private:
  // Ops between a turn's value and the pieces of what all turns read.
  static constexpr int kMaxDepth = 64;

  mlir::Value makeOf(mlir::OpResult previous, mlir::OpResult current);

  mlir::OpBuilder& builder_;
  int depth_ = 0;
  llvm::DenseMap<std::pair<mlir::Value, mlir::Value>, mlir::Value> made_;
};

// What pieces are computed by.
struct SeriesTree {
  std::vector<Series> series;     // whose first ops are in the order of the block
  std::vector<Pieces> stretches;  // at the leaves, beside constants and what is shared
};

// Remembers what can't be followed, so that each series is looked at once, however many
// concatenations rest on it; also where one of them has changed something since. Values must live
// as long as it.
class SeriesSearch {
 public:
  // Nothing unless all that the pieces are computed by are series, down to stretches, constants and
  // what is shared, and there are no more of them than a vision tower has ops.
  std::optional<SeriesTree> find(const Pieces& pieces);
  // Lets find() fail for what rests on the pieces.
  void exclude(const Pieces& pieces);

 private:
  using Key = std::vector<void*>;
  static Key keyOf(const Pieces& pieces);

  std::set<Key> excluded_;
};

}  // namespace oriel

#endif  // ORIEL_PASSES_RAISE_SERIES_H_
