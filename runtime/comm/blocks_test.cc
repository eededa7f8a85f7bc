#include "runtime/comm/blocks.h"

#include <cstring>
#include <numeric>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace oriel::runtime {
namespace {

using ::testing::ElementsAre;

std::vector<char> Iota(int64_t count) {
  std::vector<char> values(count);
  std::iota(values.begin(), values.end(), 0);
  return values;
}

TEST(Blocks, OfAShape) {
  const std::vector<int64_t> shape = {2, 6, 5};
  const auto expect = [&](int64_t dim, int64_t pieces, int64_t outer, int64_t inner) {
    const Blocks blocks = BlocksOf(shape, dim, pieces);
    EXPECT_EQ(blocks.outer, outer);
    EXPECT_EQ(blocks.inner, inner);
  };
  expect(0, 2, 1, 30);
  expect(1, 3, 2, 10);
  expect(2, 5, 12, 1);
  expect(1, 1, 2, 30);
}

TEST(Blocks, PieceOfAMiddleDimension) {
  // [2, 4, 1] cut along dimension 1: the rows 0..3 and 4..7.
  const std::vector<char> whole = Iota(8);
  std::vector<char> piece(4);
  CopyPiece(PieceOf(whole.data(), {2, 2}, 2, 1, 1), 0, Contiguous(piece.data(), 4), 0, 4);
  EXPECT_THAT(piece, ElementsAre(2, 3, 6, 7));
}

TEST(Blocks, PartOfAPieceBetweenRunsOfDifferentLength) {
  // The same piece of 12 bytes in runs of 4 and of 6, and its bytes 3 to 10.
  const std::vector<char> from = Iota(24);
  std::vector<char> to(24, -1);
  CopyPiece(PieceOf(from.data(), {3, 4}, 2, 0, 1), 3, PieceOf(to.data(), {2, 6}, 2, 1, 1), 3, 8);
  EXPECT_THAT(to, ElementsAre(-1, -1, -1, -1, -1, -1, -1, -1, -1, 3, 8, 9, -1, -1, -1, -1, -1, -1,
                              10, 11, 16, 17, 18, -1));
}

// An empty piece may have no memory, and none is looked at.
TEST(Blocks, NothingToCopy) {
  CopyPiece(PieceOf(static_cast<const void*>(nullptr), {0, 4}, 2, 1, 4), 0,
            PieceOf(static_cast<void*>(nullptr), {4, 0}, 2, 1, 4), 0, 0);
  char to = 7;
  CopyPiece(PieceOf(static_cast<const void*>(nullptr), {0, 4}, 2, 1, 4), 0,
            PieceOf(static_cast<void*>(&to), {4, 0}, 2, 1, 4), 0, 0);
  EXPECT_EQ(to, 7);
}

}  // namespace
}  // namespace oriel::runtime
