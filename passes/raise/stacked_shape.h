// Several tensors of one shape in one, whose elements lie in row-major order as
// [outer, count, inner]: `outer * inner` are those of a piece.
//
//   two pieces [3, 4] behind each other are [1, 2, 12], and as a tensor [6, 4] or [2, 3, 4];
//   side by side they are [3, 2, 4], and as a tensor [3, 8]
#ifndef ORIEL_PASSES_RAISE_STACKED_SHAPE_H_
#define ORIEL_PASSES_RAISE_STACKED_SHAPE_H_

#include <optional>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

namespace oriel {

using Shape = llvm::SmallVector<int64_t>;

// A place for the index of the piece in a dimension of the pieces: in front of it (`within` 1),
// behind it (`within` its size), or between the factors of its size.
struct StackingPlace {
  int64_t dim, within;
};

struct StackedShape {
  Shape piece;
  int64_t count, outer;

  int64_t outerAt(StackingPlace place) const;
  // The shape of a piece, with `count` times as many in the dimension.
  Shape at(StackingPlace place) const;
};

// How the elements come into another order: reshape, transpose, reshape.
struct Restacking {
  Shape split;        // empty: they have that order
  Shape permutation;  // of `split`
  Shape shape;
};

// Nothing where no split of the elements has both places between its dimensions.
std::optional<Restacking> restack(const StackedShape& stacked, StackingPlace place);

// How all pieces are transposed at once. The index of the piece goes behind the first dimensions
// that stay where they are, if it was behind them, else to the front; `outer` is set to what is in
// front of it. Nothing where the pieces lie between the factors of a dimension.
std::optional<Restacking> transposeStacked(StackedShape& stacked,
                                           llvm::ArrayRef<int64_t> permutation);

}  // namespace oriel

#endif  // ORIEL_PASSES_RAISE_STACKED_SHAPE_H_
