#include "passes/stage/siamese_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace oriel {
namespace {

using ::testing::ElementsAre;

// A lookup, layers, and what compares the ends of the branches.
BranchOp op(int kind, std::vector<int> operands, bool hasWeight = true) {
  return {std::move(operands), kind, hasWeight};
}

TEST(SiameseOrder, BranchesGoSideBySide) {
  const std::vector<BranchOp> ops = {op(0, {}),  op(1, {0}), op(2, {1}),          op(0, {}),
                                     op(1, {3}), op(2, {4}), op(3, {2, 5}, false)};
  EXPECT_THAT(siameseOrder(ops, {0, 1, 2, 3, 4, 5, 6}), ElementsAre(0, 3, 1, 4, 2, 5, 6));
}

// The second branch ends where another goes on.
TEST(SiameseOrder, OfThree) {
  const std::vector<BranchOp> ops = {op(0, {}),  op(1, {0}), op(0, {}),  op(1, {2}),
                                     op(4, {3}), op(0, {}),  op(1, {5}), op(5, {1, 4, 6}, false)};
  EXPECT_THAT(siameseOrder(ops, {0, 1, 2, 3, 4, 5, 6, 7}), ElementsAre(0, 2, 5, 1, 3, 6, 4, 7));
}

TEST(SiameseOrder, ACommonEmbeddingIsNoBranch) {
  const std::vector<BranchOp> ops = {op(0, {}), op(1, {0}), op(0, {}), op(2, {1, 2})};
  EXPECT_THAT(siameseOrder(ops, {0, 1, 2, 3}), ElementsAre(0, 1, 2, 3));
}

// The same layer again (Lan et al. 2020) is another computation.
TEST(SiameseOrder, LayersThatRepeatStay) {
  const std::vector<BranchOp> ops = {op(0, {}), op(1, {0}), op(1, {1}), op(1, {2})};
  EXPECT_THAT(siameseOrder(ops, {0, 1, 2, 3}), ElementsAre(0, 1, 2, 3));
}

}  // namespace
}  // namespace oriel
