#include "runtime/base/box.h"

#include <numeric>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace oriel::runtime {
namespace {

using ::testing::ElementsAre;

TEST(BoxTest, Intersection) {
  EXPECT_EQ(Intersect({{0, 2}, {4, 4}}, {{2, 0}, {4, 3}}), (Box{{2, 2}, {2, 1}}));
  EXPECT_EQ(Intersect({{0}, {4}}, {{4}, {4}}).num_elements(), 0);
  EXPECT_EQ(Intersect({{0}, {4}}, {{6}, {2}}).num_elements(), 0);
  EXPECT_EQ(Intersect({}, {}).num_elements(), 1);
}

TEST(BoxTest, NamesItself) { EXPECT_EQ((Box{{0, 2}, {4, 1}}).ToString(), "[4, 1] at [0, 2]"); }

// Rows of a matrix are one run, columns one for each row.
TEST(BoxRunsTest, AreAsLongAsCanBe) {
  const Box whole = WholeBox({4, 6});
  const BoxRuns rows(whole, {{2, 0}, {2, 6}});
  EXPECT_EQ(rows.count(), 1);
  EXPECT_EQ(rows.length(), 12);
  EXPECT_EQ(rows[0].a, 12);
  EXPECT_EQ(rows[0].b, 0);

  const BoxRuns columns(whole, {{0, 3}, {4, 3}});
  EXPECT_EQ(columns.count(), 4);
  EXPECT_EQ(columns.length(), 3);
  EXPECT_EQ(columns[2].a, 15);
  EXPECT_EQ(columns[2].b, 6);

  // The inner dimensions are whole in both, so that each row of them is a run.
  const BoxRuns blocks(WholeBox({2, 4, 3, 5}), {{0, 2, 0, 0}, {2, 2, 3, 5}});
  EXPECT_EQ(blocks.count(), 2);
  EXPECT_EQ(blocks.length(), 30);
}

TEST(BoxRunsTest, ScalarsAndEmptyBoxes) {
  const BoxRuns scalar({}, {});
  EXPECT_EQ(scalar.count(), 1);
  EXPECT_EQ(scalar.length(), 1);
  EXPECT_EQ(BoxRuns(WholeBox({3, 0}), WholeBox({3, 0})).count(), 0);
  EXPECT_EQ(BoxRuns(WholeBox({0, 3}), WholeBox({0, 3})).count(), 0);
  EXPECT_EQ(BoxRuns(WholeBox({4, 4}), {{0, 4}, {4, 4}}).count(), 0);
}

// Random boxes of a tensor, element by element.
TEST(BoxTest, CopyMovesWhatTheBoxesShare) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 500; ++trial) {
    Shape whole;
    Box boxes[2];
    for (size_t d = 0; d < trial % 5u; ++d) {
      whole.push_back(1 + random() % 5);
      for (Box& box : boxes) {
        box.start.push_back(random() % whole[d]);
        box.size.push_back(1 + random() % (whole[d] - box.start[d]));
      }
    }
    const auto [from, to] = boxes;
    std::vector<int> source(from.num_elements()), target(to.num_elements(), -1);
    std::iota(source.begin(), source.end(), 0);
    CopyBox(from, source.data(), to, target.data(), sizeof(int));
    for (int64_t i = 0; i < to.num_elements(); ++i) {
      int64_t rest = i, place = 0, stride = 1;
      bool shared = true;
      for (size_t d = whole.size(); d-- > 0;) {
        const int64_t in_from = rest % to.size[d] + to.start[d] - from.start[d];
        rest /= to.size[d];
        shared = shared && in_from >= 0 && in_from < from.size[d];
        place += in_from * stride;
        stride *= from.size[d];
      }
      ASSERT_EQ(target[i], shared ? place : -1)
          << from.ToString() << " to " << to.ToString() << ", element " << i;
    }
  }
}

// Pieces are small enough, and one behind the other they are what the box stores.
TEST(CutBoxTest, AllPieces) {
  for (const Box& box : {Box{{}, {}}, Box{{5}, {7}}, Box{{1, 2, 3}, {4, 3, 5}}, Box{{0, 0}, {6, 1}},
                         Box{{2, 0, 1, 0}, {2, 2, 3, 2}}}) {
    std::vector<int> stored(box.num_elements());
    std::iota(stored.begin(), stored.end(), 0);
    for (int64_t elements = 1; elements <= box.num_elements() + 1; ++elements) {
      std::vector<int> joined;
      for (const Box& piece : CutBox(box, elements)) {
        EXPECT_LE(piece.num_elements(), elements);
        std::vector<int> part(piece.num_elements(), -1);
        CopyBox(box, stored.data(), piece, part.data(), sizeof(int));
        joined.insert(joined.end(), part.begin(), part.end());
      }
      EXPECT_EQ(joined, stored) << box.ToString() << " by " << elements;
    }
  }
  // Rows are not cut where some fit.
  EXPECT_EQ(CutBox({{0, 4}, {5, 3}}, 7).size(), 3u);
  EXPECT_TRUE(CutBox({{0, 4}, {0, 3}}, 7).empty());
}

}  // namespace
}  // namespace oriel::runtime
