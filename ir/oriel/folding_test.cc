#include "ir/oriel/folding.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"

namespace oriel::ir {
namespace {

using mlir::RankedTensorType;
using testing::ElementsAre;

class FoldingTest : public testing::Test {
 protected:
  template <typename T>
  std::vector<T> Through(mlir::Type elementType, std::vector<T> values) {
    auto type = RankedTensorType::get({static_cast<int64_t>(values.size())}, elementType);
    return readElements<T>(writeElements<T>(type, values)).values;
  }

  mlir::MLIRContext context_;
  mlir::Builder builder_{&context_};
};

TEST_F(FoldingTest, FloatsOfEachWidthKeepWhatTheyCanHold) {
  EXPECT_THAT(Through<float>(builder_.getF32Type(), {0.1f, -2.0f}), ElementsAre(0.1f, -2.0f));
  EXPECT_THAT(Through<double>(builder_.getF64Type(), {0.1, -2.0}), ElementsAre(0.1, -2.0));
  EXPECT_THAT(Through<float>(builder_.getF16Type(), {0.5f, 65504.0f}), ElementsAre(0.5f, 65504.0f));
  EXPECT_THAT(Through<float>(builder_.getBF16Type(), {0.5f, 3.0e38f}),
              ElementsAre(0.5f, testing::FloatNear(3.0e38f, 2e36f)));
}

TEST_F(FoldingTest, NarrowFloatsRoundToNearestEven) {
  // 1 + 2^-11 lies midway between two halves, 2049 too.
  EXPECT_THAT(Through<float>(builder_.getF16Type(), {1.00048828125f, 2049.0f}),
              ElementsAre(1.0f, 2048.0f));
}

TEST_F(FoldingTest, IntegersOfEachWidthWrap) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  EXPECT_THAT(Through<int64_t>(builder_.getI64Type(), {kMin, 7}), ElementsAre(kMin, 7));
  EXPECT_THAT(Through<int64_t>(builder_.getI32Type(), {int64_t{1} << 31, -1}),
              ElementsAre(-(int64_t{1} << 31), -1));
  EXPECT_THAT(Through<int64_t>(builder_.getIntegerType(8), {200, -3}), ElementsAre(-56, -3));
  EXPECT_THAT(Through<int64_t>(builder_.getIntegerType(8, /*isSigned=*/false), {200, -3}),
              ElementsAre(200, 253));
  EXPECT_THAT(Through<int64_t>(builder_.getI1Type(), {2, 0, 1}), ElementsAre(1, 0, 1));
}

TEST_F(FoldingTest, OneValueIsASplatOfTheWholeType) {
  auto type = RankedTensorType::get({1000, 1000, 1000}, builder_.getF32Type());
  mlir::DenseElementsAttr constant = writeElements<float>(type, 2.5f);
  EXPECT_TRUE(constant.isSplat());
  EXPECT_EQ(readElements<float>(constant)[999999999], 2.5f);
}

TEST_F(FoldingTest, ATensorWithoutElementsHasNone) {
  auto type = RankedTensorType::get({3, 0}, builder_.getI64Type());
  EXPECT_TRUE(readElements<int64_t>(writeElements<int64_t>(type, 7)).values.empty());
}

TEST_F(FoldingTest, IsUniformComparesEveryElement) {
  auto type = RankedTensorType::get({2}, builder_.getF32Type());
  EXPECT_TRUE(isUniform(writeElements<float>(type, {1.0f, 1.0f}), 1));
  EXPECT_FALSE(isUniform(writeElements<float>(type, {1.0f, 2.0f}), 1));
  EXPECT_FALSE(isUniform(mlir::Attribute(), 1));
}

TEST_F(FoldingTest, BroadcastStridesRepeatSizeOneAndMissingDimensions) {
  EXPECT_THAT(rowMajorStrides({2, 3, 4}), ElementsAre(12, 4, 1));
  EXPECT_THAT(broadcastStrides({3, 1}, {2, 3, 4}), ElementsAre(0, 1, 0));
}

TEST_F(FoldingTest, WalkVisitsRowMajorWithOffsetsOfEachOperand) {
  std::vector<std::pair<int64_t, int64_t>> visited;
  EXPECT_TRUE(walkStrided<2>({2, 2}, {{{2, 1}, {1, 2}}}, [&](auto offsets) {
    visited.emplace_back(offsets[0], offsets[1]);
    return true;
  }));
  EXPECT_THAT(visited, ElementsAre(testing::Pair(0, 0), testing::Pair(1, 2), testing::Pair(2, 1),
                                   testing::Pair(3, 3)));
}

TEST_F(FoldingTest, WalkVisitsAScalarOnceAndAnEmptyShapeNever) {
  int visits = 0;
  auto count = [&](auto) { return ++visits > 0; };
  walkStrided<1>({}, {{{}}}, count);
  EXPECT_EQ(visits, 1);
  // The other size is larger than could ever be walked.
  walkStrided<1>({std::numeric_limits<int64_t>::max(), 0}, {{{0, 0}}}, count);
  EXPECT_EQ(visits, 1);
}

TEST_F(FoldingTest, OnlyUniformResultsMayBeLarge) {
  auto large = RankedTensorType::get({kMaxFoldedElements + 1}, builder_.getF32Type());
  EXPECT_FALSE(mayFoldTo(large, /*uniform=*/false));
  EXPECT_TRUE(mayFoldTo(large, /*uniform=*/true));
  EXPECT_TRUE(mayFoldTo(large.clone(builder_.getI64Type()), /*uniform=*/false));
  large = RankedTensorType::get({kMaxFoldedIntegers + 1}, builder_.getI1Type());
  EXPECT_FALSE(mayFoldTo(large, /*uniform=*/false));
}

TEST_F(FoldingTest, WhatIsNoMaskRepeatsLess) {
  auto type = RankedTensorType::get({kMaxRepeatedIntegers / 2, 1, 4}, builder_.getI64Type());
  const auto row =
      mlir::DenseElementsAttr::get(type.clone({1, 4}), llvm::ArrayRef<int64_t>{1, 2, 3, 4});
  const auto all = mlir::DenseElementsAttr::get(type, int64_t{1});
  EXPECT_FALSE(mayFoldTo(type, {row, all}));
  EXPECT_TRUE(mayFoldTo(type, {all, all}));
  EXPECT_TRUE(mayFoldTo(type.clone(builder_.getI1Type()), {row, all}));
  EXPECT_TRUE(mayFoldTo(type.clone({kMaxRepeatedIntegers / 4, 1, 4}), {row, all}));
  EXPECT_TRUE(mayFoldTo(type.clone({1, kMaxRepeatedIntegers / 2, 4}), {row, all}));
  std::vector<int64_t> elements(2 * kMaxRepeatedIntegers);
  elements[1] = 1;
  const auto table = mlir::DenseElementsAttr::get(type, llvm::ArrayRef<int64_t>(elements));
  EXPECT_TRUE(mayFoldTo(type, {row, table}));
}

}  // namespace
}  // namespace oriel::ir
