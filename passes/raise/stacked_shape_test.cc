#include "passes/raise/stacked_shape.h"

#include <numeric>
#include <vector>

#include "gtest/gtest.h"

namespace oriel {
namespace {

using Elements = std::vector<int64_t>;

int64_t countOf(const Shape& shape) {
  int64_t count = 1;
  for (int64_t size : shape) count *= size;
  return count;
}

// Element e of piece p is p * 1000 + e.
Elements stackedAt(const StackedShape& stacked, int64_t outer) {
  const int64_t inner = countOf(stacked.piece) / outer;
  Elements elements;
  for (int64_t i = 0; i < outer; ++i) {
    for (int64_t p = 0; p < stacked.count; ++p) {
      for (int64_t j = 0; j < inner; ++j) elements.push_back(p * 1000 + i * inner + j);
    }
  }
  return elements;
}

Elements transposed(const Elements& elements, const Shape& shape, const Shape& permutation) {
  Shape strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  Elements result;
  for (size_t n = 0; n < elements.size(); ++n) {
    int64_t rest = static_cast<int64_t>(n), from = 0;
    for (size_t i = permutation.size(); i-- > 0;) {
      from += rest % shape[permutation[i]] * strides[permutation[i]];
      rest /= shape[permutation[i]];
    }
    result.push_back(elements[from]);
  }
  return result;
}

// Every place for every order, where there is a way.
TEST(StackedShape, RestackingMovesEachElementToItsPlace) {
  int moved = 0, refused = 0;
  for (const Shape& piece : std::vector<Shape>{{6}, {1, 4, 3}, {4, 1, 6}, {2, 3, 5, 2}}) {
    const int64_t elements = countOf(piece);
    for (int64_t from = 1; from <= elements; ++from) {
      if (elements % from != 0) continue;
      StackedShape stacked{piece, 3, from};
      for (int64_t dim = 0; dim < static_cast<int64_t>(piece.size()); ++dim) {
        for (int64_t within = 1; within <= piece[dim]; ++within) {
          if (piece[dim] % within != 0) continue;
          const StackingPlace place{dim, within};
          std::optional<Restacking> way = restack(stacked, place);
          if (!way) {
            ++refused;
            continue;
          }
          Elements result = stackedAt(stacked, from);
          if (!way->split.empty()) {
            ASSERT_EQ(countOf(way->split), elements * 3);
            result = transposed(result, way->split, way->permutation);
            ++moved;
          }
          EXPECT_EQ(countOf(way->shape), elements * 3);
          EXPECT_EQ(result, stackedAt(stacked, stacked.outerAt(place)));
        }
      }
    }
  }
  EXPECT_GT(moved, 100);
  EXPECT_GT(moved, refused);
}

// All pieces transposed are each piece transposed.
TEST(StackedShape, TransposesEachPiece) {
  for (const Shape& permutation : std::vector<Shape>{{0, 2, 1}, {2, 1, 0}, {1, 2, 0}, {0, 1, 2}}) {
    for (int64_t from : {1, 2, 6, 24}) {
      StackedShape stacked{{2, 3, 4}, 3, from};
      const Elements before = stackedAt(stacked, from);
      std::optional<Restacking> way = transposeStacked(stacked, permutation);
      ASSERT_TRUE(way);
      const Elements after = transposed(before, way->split, way->permutation);
      const Elements one = transposed(stackedAt({{2, 3, 4}, 1, 1}, 1), {2, 3, 4}, permutation);
      Elements expected = stackedAt(stacked, stacked.outer);
      for (int64_t& element : expected) element = element / 1000 * 1000 + one[element % 1000];
      EXPECT_EQ(after, expected);
    }
  }
  StackedShape behindTheSample{{2, 3, 4}, 5, /*outer=*/6};
  EXPECT_EQ(transposeStacked(behindTheSample, {0, 2, 1})->shape, (Shape{2, 5, 4, 3}));
  StackedShape withinADimension{{4, 3}, 5, /*outer=*/2};
  EXPECT_FALSE(transposeStacked(withinADimension, {1, 0}));
}

// [b, n s, h] as [b n, s, h]: the pieces of each b follow each other already.
TEST(StackedShape, AMoveOverSizeOneIsNone) {
  StackedShape sequence{{2, 5, 3}, 4, /*outer=*/2};
  EXPECT_TRUE(restack(sequence, {1, 1})->split.empty());
  EXPECT_TRUE(restack(sequence, {0, 2})->split.empty());
  EXPECT_EQ(restack(sequence, {0, 2})->shape, (Shape{8, 5, 3}));
  EXPECT_FALSE(restack(sequence, {0, 1})->split.empty());
}

// Rows of 4 and columns of 6 have no boundary in common.
TEST(StackedShape, NoWayBetweenBoundariesThatCross) {
  EXPECT_FALSE(restack({{12}, 2, /*outer=*/4}, {0, 6}));
}

}  // namespace
}  // namespace oriel
