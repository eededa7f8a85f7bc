#include "passes/raise/stacked_shape.h"

#include <algorithm>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"

namespace oriel {

namespace {

// Splits a dimension, if need be, so that those before the index returned have `outer` elements.
std::optional<size_t> cutAt(Shape& dims, int64_t outer) {
  int64_t before = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (before == outer) return i;
    const int64_t after = before * dims[i];
    if (after > outer) {
      if (outer % before != 0 || after % outer != 0) return std::nullopt;
      dims[i] = after / outer;
      dims.insert(dims.begin() + i, outer / before);
      return i + 1;
    }
    before = after;
  }
  return dims.size();
}

}  // namespace

int64_t StackedShape::outerAt(StackingPlace place) const {
  return llvm::product_of(llvm::ArrayRef(piece).take_front(place.dim)) * place.within;
}

Shape StackedShape::at(StackingPlace place) const {
  Shape shape = piece;
  shape[place.dim] *= count;
  return shape;
}

std::optional<Restacking> restack(const StackedShape& stacked, StackingPlace place) {
  Restacking moved;
  moved.shape = stacked.at(place);
  const int64_t to = stacked.outerAt(place), from = stacked.outer;
  if (to == from) return moved;
  // Dimensions stay apart where they can, for ranks that share them.
  Shape dims = stacked.piece;
  std::optional<size_t> inner = cutAt(dims, std::max(from, to));
  std::optional<size_t> outer = inner ? cutAt(dims, std::min(from, to)) : std::nullopt;
  if (!outer) {
    // Boundaries within dimensions: any split will do where one is a multiple of the other.
    const int64_t low = std::min(from, to), high = std::max(from, to);
    if (high % low != 0) return std::nullopt;
    dims = {low, high / low, llvm::product_of(stacked.piece) / high};
    outer = 1;
  }
  // The outer cut may have split a dimension before the inner one.
  inner = *cutAt(dims, std::max(from, to));
  const size_t source = from < to ? *outer : *inner, target = from < to ? *inner : *outer;
  moved.split = dims;
  moved.split.insert(moved.split.begin() + source, stacked.count);
  for (size_t i = 0; i < dims.size(); ++i) moved.permutation.push_back(i < source ? i : i + 1);
  moved.permutation.insert(moved.permutation.begin() + target, source);
  return moved;
}

std::optional<Restacking> transposeStacked(StackedShape& stacked,
                                           llvm::ArrayRef<int64_t> permutation) {
  Restacking moved;
  moved.split = stacked.piece;
  std::optional<size_t> at = cutAt(moved.split, stacked.outer);
  if (!at || moved.split.size() != stacked.piece.size()) return std::nullopt;
  moved.split.insert(moved.split.begin() + *at, stacked.count);
  size_t kept = 0;
  while (kept < *at && permutation[kept] == static_cast<int64_t>(kept)) ++kept;
  Shape piece;
  for (int64_t dim : permutation) {
    piece.push_back(stacked.piece[dim]);
    moved.permutation.push_back(dim < static_cast<int64_t>(*at) ? dim : dim + 1);
  }
  moved.permutation.insert(moved.permutation.begin() + kept, static_cast<int64_t>(*at));
  for (int64_t dim : moved.permutation) moved.shape.push_back(moved.split[dim]);
  stacked.piece = std::move(piece);
  stacked.outer = llvm::product_of(llvm::ArrayRef(stacked.piece).take_front(kept));
  return moved;
}

}  // namespace oriel
